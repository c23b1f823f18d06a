/** Key-value stores: wires the endpoint to `entries`, which owns rows and expiry, and sweeps expired rows. */

import type { Clock } from '../../base/clock.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Feature } from '../feature.ts'
import { createBrowseEndpoints } from './browse-endpoints.ts'
import { createKvEndpoint, type KvEndpointDeps } from './endpoints.ts'
import { createEntries, kvNamespace } from './entries.ts'

export interface KvDeps extends Omit<KvEndpointDeps, 'entries'> {
  readonly sql: Sql
  readonly clock: Clock
  /** Called once the namespace has a table of results of effects, which the caller trims from then on. */
  readonly trimEffectsOf: (namespace: string) => void
}

export function createKv({ sql, clock, trimEffectsOf, ...served }: KvDeps): Feature {
  const entries = createEntries(sql, clock)
  let prepared: Promise<void> | null = null

  return {
    name: 'kv',
    endpoints: [createKvEndpoint({ entries, ...served }), ...createBrowseEndpoints({ entries, ...served })],

    /** Creates the tables when the first namespace is declared. */
    async configure({ kv: configured }) {
      if (configured.size === 0) return
      prepared ??= entries.prepare().catch((error) => {
        prepared = null
        throw error
      })
      await prepared
      trimEffectsOf(kvNamespace)
    },

    jobs: [
      {
        name: 'kv.sweep',
        intervalMs: housekeepingIntervalMs,
        async run() {
          if (prepared) await entries.sweep()
        },
      },
    ],
  }
}
