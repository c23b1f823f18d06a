/** Versions of records that are inserted with the ids of removed ones, under any clock and across restarts. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { manualClock } from '../../../src/base/clock.ts'
import { insertVersion, nextVersion } from '../../../src/features/records/version.ts'
import type { Answer } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { describeServer } from '../../harness/server.ts'

const startMs = Date.now()
const clock = manualClock(startMs)
const tables = { items: { access: open } }
const config = {
  databases: { shared: { tables }, space: { instance: true, access: () => true, tables } },
}

const versionOf = ({ headers }: Answer): number => Number(/^"(\d+)[-"]/.exec(headers.get('etag') ?? '')?.[1])

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('write' as const), id: fc.constantFrom('a', 'b', 'c') }) },
  // In one millisecond, later, and earlier.
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('clock' as const), byMs: fc.integer({ min: -3, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
)

describeServer('reinserted versions', { config, clock }, (server) => {
  let run = 0
  for (const database of ['shared', 'space/x'])
    test(`[DB-VER-3] a record continues the versions of the removed one, and only its: ${database}`, async () => {
      const table = `/api/db/${database}/tables/items`
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
          const prefix = `${++run}-`
          clock.set(startMs)
          const present = new Set<string>()
          const versions = new Map<string, number>()
          for (const one of steps) {
            if (one.kind === 'restart') await server.restart()
            else if (one.kind === 'clock') clock.set(clock.now() + one.byMs)
            else {
              const id = prefix + one.id
              const isInsert = !present.delete(id)
              if (isInsert) present.add(id)
              const answer = isInsert
                ? await server.anonymous.post(table, { id })
                : await server.anonymous.delete(`${table}/${id}`)
              const last = versions.get(id) ?? 0
              const isLater = last < insertVersion(clock.now())
              const expected = isInsert && isLater ? insertVersion(clock.now()) : nextVersion(last, clock.now())
              expect([answer.status, versionOf(answer)]).toEqual([isInsert ? 201 : 200, expected])
              versions.set(id, expected)
            }
          }
        }),
        { numRuns: 25 },
      )
    })
})
