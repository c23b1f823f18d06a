/**
 * Changes of the options of a search at startup: the index is built for existing records, and what searches find and in
 * which order is that of the new options.
 */
import { afterEach, expect, test } from 'bun:test'
import { searchFillRows } from '../../src/limits/sqlite.ts'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { forgetTerms } from '../harness/records/earlier-release.ts'
import { type OracleOptions, rankedIds } from '../harness/records/ranked-oracle.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { times } from '../harness/times.ts'

const items = '/api/db/shared/tables/items'
const inSpace = (id: string): string => `/api/db/space/${id}/tables/items`
const schema = { title: { type: 'string' }, body: { type: 'text' } } as const

const configOf = (options: Record<string, unknown>, fields: Record<string, unknown> = schema) => {
  const table = { schema: fields, access: open, ...options }
  return {
    databases: {
      shared: { tables: { items: table } },
      space: { instance: true, access: () => true, tables: { items: table } },
    },
  }
}

const rows = [
  { id: 'a', title: 'Heidelberg', body: 'castle' },
  { id: 'b', title: 'castle', body: 'Heidelbreg 東京都' },
  { id: 'c', title: 'Neuheidelberg', body: 'Heidelberg' },
  { id: 'd', title: null, body: null },
]
const searches = ['heidelberg', 'heidleberg', 'delb', 'castl', '京都', 'castle heidelberg']

const ranked = ({ weights, ...searchOptions }: OracleOptions) => ({
  search: Object.entries(weights).map(([field, weight]) => ({ field, weight })),
  searchOptions,
})

for (const engine of engines) {
  let server: TestServer | null = null
  afterEach(async () => {
    await server?.close()
    server = null
  })

  const start = async (options: Record<string, unknown>): Promise<TestServer> => {
    server = await startServer({ config: configOf(options) }, engine)
    for (const table of [items, inSpace('x')])
      expect((await server.service.post(`${table}/batch`, { inserts: rows })).status).toBe(200)
    return server
  }
  const idsOf = async (running: TestServer, table: string, q: string): Promise<string[]> => {
    const { status, body, text } = await running.service.get(`${table}/search${query({ q, limit: 1000 })}`)
    if (status !== 200) throw new Error(text)
    return body.items.map(({ id }: { id: string }) => id)
  }

  test(`[DB-START-4, DB-SEARCH-21] weights and options change, and are added and removed: ${engine.name}`, async () => {
    const running = await start({ search: ['title', 'body'] })
    const options: OracleOptions = { weights: { title: 4, body: 1 }, typos: true, prefix: true, substring: false }
    const steps: readonly OracleOptions[] = [
      options,
      { ...options, typos: false },
      { ...options, substring: true },
      { ...options, weights: { title: 1, body: 3 } },
      { ...options, weights: { body: 1 }, prefix: false },
      options,
    ]
    let stored = rows
    for (const [step, next] of steps.entries()) {
      await running.restart(configOf(ranked(next)))
      const added = { id: `n${step}`, title: `castle ${step}`, body: 'heidelberg' }
      stored = [...stored, added]
      for (const table of [items, inSpace('x')]) {
        expect((await running.service.post(table, added)).status).toBe(201)
        for (const q of searches) expect([q, await idsOf(running, table, q)]).toEqual([q, rankedIds(stored, q, next)])
      }
    }
    await running.restart(configOf({ search: ['title'] }))
    for (const table of [items, inSpace('x')])
      expect((await idsOf(running, table, 'castle')).sort()).toEqual(['b', ...times(6, (n) => `n${n}`)])
    await running.restart(configOf({}))
    expect((await running.service.patch(`${items}/a`, { title: 'Mannheim' })).status).toBe(200)
    await running.restart(configOf(ranked(options)))
    expect(await idsOf(running, items, 'mannhiem')).toEqual(['a'])
    expect(await idsOf(running, inSpace('x'), 'heidleberg')).toContain('a')
  })

  test(`[DB-START-4, DB-SEARCH-21] an index of any number of existing records: ${engine.name}`, async () => {
    const running = await start({})
    const count = searchFillRows + 250
    for (let from = 0; from < count; from += 250) {
      const inserts = times(250, (at) => ({ id: `m${from + at}`, title: `many q${from + at}` }))
      for (const table of [items, inSpace('x')])
        expect((await running.service.post(`${table}/batch`, { inserts })).status).toBe(200)
    }
    await running.restart(configOf({ search: ['title'], searchOptions: { typos: true } }))
    for (const table of [items, inSpace('x')]) {
      expect((await running.service.get(`${table}/search?q=mnay`)).body.total).toBe(count)
      expect(await idsOf(running, table, `q${count - 1}`)).toEqual([`m${count - 1}`])
    }
  })

  test(`[DB-START-2, DB-SEARCH-10] a default that fills a searched field is found: ${engine.name}`, async () => {
    for (const search of [['title'], [{ field: 'title', weight: 2 }]]) {
      const running = await start({ search })
      const filled = { ...schema, title: { type: 'string', required: true, default: 'Unnamed' } }
      await running.restart(configOf({ search }, filled))
      for (const table of [items, inSpace('x')]) expect(await idsOf(running, table, 'unnamed')).toEqual(['d'])
      await running.close()
      server = null
    }
  })

  test(`[DB-SEARCH-21] an earlier release may have changed the records: ${engine.name}`, async () => {
    const options: OracleOptions = { weights: { title: 1 }, typos: true, prefix: true, substring: true }
    const running = await start(ranked(options))
    await forgetTerms(running, ['shared', 'space'], 'items')
    await running.restart()
    for (const table of [items, inSpace('x')])
      expect([await idsOf(running, table, 'hannvoer'), await idsOf(running, table, 'heidelberg')]).toEqual([
        ['a'],
        ['c'],
      ])
  })
}
