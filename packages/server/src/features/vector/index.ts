/** The vector feature: wires indexes to tables, search engines and the endpoint. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { VectorIndexDefinition } from '../../config/sections/vector/vector.ts'
import { preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import type { Vectors } from '../../engines/vectors/vectors.ts'
import type { ResponseLimits } from '../../http/replies/large-responses.ts'
import type { Feature } from '../feature.ts'
import { createVectorEndpoints } from './endpoints.ts'
import { createVectorTables, vectorNamespace, vectorTableSteps } from './migrations.ts'
import { createPgvector } from './pgvector.ts'
import { createQueries } from './queries.ts'
import { createVectorRows } from './rows.ts'
import { ServedIndexes } from './served-indexes.ts'
import { createVectorWrites } from './writes.ts'

export interface VectorDeps {
  readonly sql: Sql
  /** In-memory copies of vectors, for searches. */
  readonly vectors: Vectors
  readonly limits: ResponseLimits
  /** Called once the namespace has a table of results of effects, which the caller trims from then on. */
  readonly trimEffectsOf: (namespace: string) => void
  readonly clock: Clock
  readonly log: Log
}

/**
 * Throws `ConfigError` where stored vectors do not fit these definitions. Called before a configuration takes effect,
 * so that a rejected one changes nothing.
 */
export async function checkVectors(sql: Sql, definitions: ReadonlyMap<string, VectorIndexDefinition>): Promise<void> {
  if (definitions.size === 0) return
  const { database, checkIndexes } = createVectorTables(sql)
  await preparePlatformTables(database, vectorNamespace, 'vector', vectorTableSteps)
  await checkIndexes([...definitions.values()])
}

export function createVectors({ sql, vectors, limits, trimEffectsOf, clock, log }: VectorDeps): Feature {
  const tables = createVectorTables(sql)
  const rows = createVectorRows(tables)
  const pgvector = createPgvector(tables.database, rows, log)
  const indexes = new ServedIndexes({ tables, rows, pgvector, vectors })
  return {
    name: 'vector',
    endpoints: createVectorEndpoints({
      indexes,
      rows,
      writes: createVectorWrites(tables),
      queries: createQueries(rows, limits),
      clock,
    }),
    async configure({ vector: definitions }) {
      await indexes.configure([...definitions.values()])
      if (definitions.size > 0) trimEffectsOf(vectorNamespace)
    },
  }
}
