/** SQL databases: wires the endpoint to the databases. The engine isolates statements. */

import type { Sandboxes } from '../../engines/sandbox/sandbox.ts'
import type { Feature } from '../feature.ts'
import { SqlDatabases } from './databases.ts'
import { createSqlEndpoint } from './endpoints.ts'

/** Serves no database before `configure`. Must be closed. */
export function openSqlDatabases(sandboxes: Sandboxes): Feature {
  const databases = new SqlDatabases(sandboxes)
  return {
    name: 'sql',
    endpoints: [createSqlEndpoint(databases)],
    configure: (next) => databases.replace(next.sql, next.limits.responseBytes),
    close: () => databases.close(),
  }
}
