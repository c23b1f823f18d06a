/** Reads a change log while overlapping transactions write to it. */

import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { openPostgres } from '../../src/engines/postgres/postgres.ts'
import type { Database } from '../../src/engines/sql/sql.ts'
import { sql } from '../../src/engines/sql/sql-text.ts'
import { createChangeLogReader, type LogPosition } from '../../src/features/records/changes/change-log-reader.ts'
import { changeLog, changeOf, createAppendChange, createChangeLog } from '../../src/features/records/changes/changes.ts'
import { complete } from '../../src/query/computed/computed-fields.ts'
import { createDatabase } from '../harness/databases.ts'

const ref = { namespace: 'main', perInstance: false }
const address = { namespace: 'main', instanceId: null }

/** A transaction that inserts and commits on demand. */
function begin(database: Database, name: string) {
  const append = createAppendChange({ ...ref, name: 'items' }, database.dialect)
  let next = Promise.withResolvers<'insert' | 'commit'>()
  let done = Promise.withResolvers<void>()
  let count = 0
  const written = database.write(async (tx) => {
    while ((await next.promise) === 'insert') {
      const id = `${name}-${count++}`
      await tx.run(append(changeOf(null as never, id, null, complete({ computed: [] }, { id }), 1), name, 0))
      next = Promise.withResolvers()
      done.resolve()
    }
  })
  return {
    get count() {
      return count
    },
    async insert(): Promise<void> {
      done = Promise.withResolvers()
      next.resolve('insert')
      await done.promise
    },
    async commit(): Promise<void> {
      next.resolve('commit')
      await written
    },
  }
}

const serverUrl = process.env.PLINTH_TEST_DATABASE_URL
const opened: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of opened.reverse()) await close()
})

if (serverUrl)
  test('[SUB-73] in whichever order transactions commit, each change is read once, in the order within its transaction', async () => {
    const { url, drop } = await createDatabase(serverUrl)
    const engine = openPostgres({ url, log: silentLog })
    opened.push(drop, () => engine.close())
    const database = engine.database(address)
    await database.write(async (tx) => {
      for (const step of database.dialect.prepareNamespace('main')) await tx.run(step)
      for (const step of createChangeLog(ref, database.dialect)) await tx.run(step)
    })
    const log = database.dialect.target(changeLog(ref))
    const reader = createChangeLogReader({
      database,
      address,
      perInstance: false,
      findRows: () => null,
      nowMs: systemClock.now,
      storage: engine,
    })

    const transactions = 4
    const step = fc.oneof(
      fc.record({ kind: fc.constant('insert' as const), which: fc.nat(transactions - 1) }),
      fc.record({ kind: fc.constant('commit' as const), which: fc.nat(transactions - 1) }),
      fc.record({ kind: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 3 }) }),
    )
    const run = async (steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[]): Promise<void> => {
      await database.write((tx) => tx.run(sql`DELETE FROM ${log}`))
      let position: LogPosition = await reader.currentPosition()
      const since = position
      const read: string[] = []
      const all: string[] = []
      let names = 0
      const fresh = () => {
        const name = `t${++names}`
        return { name, of: begin(database, name) }
      }
      const running = Array.from({ length: transactions }, fresh)
      const end = async (which: number): Promise<void> => {
        const { name, of } = running[which] as (typeof running)[number]
        await of.commit()
        for (let n = 0; n < of.count; n++) all.push(`${name}-${n}`)
      }
      const readPage = async (limit: number): Promise<boolean> => {
        const page = await reader.read(position, { changes: limit, bytes: 1000 })
        read.push(...page.changes.map(({ id }) => id))
        position = page.next
        return page.isLast
      }
      for (const one of steps) {
        if (one.kind === 'read') await readPage(one.limit)
        else if (one.kind === 'insert') await running[one.which]?.of.insert()
        else {
          await end(one.which)
          running[one.which] = fresh()
        }
      }
      for (let which = 0; which < transactions; which++) await end(which)
      while (!(await readPage(2)));
      expect(read.toSorted()).toEqual(all.toSorted())
      const indexOf = (id: string) => read.indexOf(id)
      for (const id of all) {
        const [name, n] = id.split('-') as [string, string]
        if (n !== '0') expect(indexOf(id)).toBeGreaterThan(indexOf(`${name}-${Number(n) - 1}`))
      }
      // A second read over the same range returns each change once.
      const again: string[] = []
      for (let at = since, isLast = false; !isLast; ) {
        const page = await reader.readUntil(at, position, { changes: 3, bytes: 1000 })
        again.push(...page.changes.map(({ id }) => id))
        at = page.next
        isLast = page.isLast
      }
      expect(again.toSorted()).toEqual(all.toSorted())
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), run), { numRuns: 60 })
  })
