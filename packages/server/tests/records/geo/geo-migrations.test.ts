/** Geo fields and their indexes of existing tables: added, filled, kept over restarts, and removed. */
import { afterEach, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { engines } from '../../harness/engines.ts'
import { startServer, type TestServer } from '../../harness/server.ts'

const items = '/api/db/shared/tables/items'
const tables = [items, '/api/db/space/x/tables/items']
const filter = [['location', 'near', [13.4, 52.5, '5km']]]

const configOf = (schema: Readonly<Record<string, unknown>>) => {
  const table = { schema: { title: { type: 'string' }, ...schema }, access: open }
  return {
    databases: {
      shared: { tables: { items: table } },
      space: { instance: true, access: () => true, tables: { items: table } },
    },
  }
}

for (const engine of engines) {
  let server: TestServer | null = null
  afterEach(async () => {
    await server?.close()
    server = null
  })

  const start = async (schema: Readonly<Record<string, unknown>>): Promise<TestServer> => {
    server = await startServer({ config: configOf(schema) }, engine)
    return server
  }
  const found = async ({ anonymous }: TestServer, table: string): Promise<string[]> => {
    const { body } = await anonymous.get(table + query({ filter, sort: 'location.distance:asc' }))
    return body.items.map(({ id }: { id: string }) => id)
  }

  test(`[DB-GEO-13] a geo field of existing records is null or its default: ${engine.name}`, async () => {
    const running = await start({})
    for (const table of tables) await running.service.post(table, { id: 'old', title: 'one' })
    await running.restart(
      configOf({
        location: { type: 'geo', index: true },
        base: { type: 'geo', required: true, default: [13.4, 52.5], index: true },
      }),
    )
    for (const table of tables) {
      expect((await running.anonymous.get(`${table}/old`)).body).toMatchObject({ location: null, base: [13.4, 52.5] })
      const nearBase = query({ filter: [['base', 'near', [13.4, 52.5, '0m']]] })
      expect((await running.anonymous.get(table + nearBase)).body.total).toBe(1)
      expect(await found(running, table)).toEqual([])
      await running.service.patch(`${table}/old`, { location: [13.41, 52.5] })
      await running.service.post(table, { id: 'new', location: [13.4, 52.5] })
      expect(await found(running, table)).toEqual(['new', 'old'])
    }
    await running.restart()
    for (const table of tables) expect(await found(running, table)).toEqual(['new', 'old'])
  })

  test(`[DB-GEO-13] an index can be added and removed, with the same results: ${engine.name}`, async () => {
    const running = await start({ location: { type: 'geo' } })
    const inserts = [13.4, 13.42, 13.5, -120].map((longitude, n) => ({ id: `r${n}`, location: [longitude, 52.5] }))
    for (const table of tables) expect((await running.service.post(`${table}/batch`, { inserts })).status).toBe(200)
    for (const index of [true, false, true]) {
      await running.restart(configOf({ location: { type: 'geo', index } }))
      for (const table of tables) {
        expect(await found(running, table)).toEqual(['r0', 'r1'])
        await running.service.delete(`${table}/r0`)
        expect(await found(running, table)).toEqual(['r1'])
        await running.service.post(table, { id: 'r0', location: [13.4, 52.5] })
      }
      const { body } = await running.service.get(items + query({ filter, explain: 1 }))
      // PostgreSQL scans so small a table anyway.
      if (engine.name.startsWith('sqlite')) expect(/SCAN items/.test(body.explain.plan.join())).toBe(!index)
    }
    for (const table of tables) {
      while ((await running.service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
      expect(await found(running, table)).toEqual([])
    }
  })

  test(`[DB-GEO-13] a type that becomes geo, and a geo field that is removed, refuse the start: ${engine.name}`, async () => {
    const running = await start({ location: { type: 'geo', index: true } })
    await running.service.post(items, { id: 'r', location: [13.4, 52.5] })
    for (const next of [{}, { location: { type: 'json' } }, { location: { type: 'geo' }, title: { type: 'geo' } }]) {
      let message = ''
      await running.restart(configOf(next)).catch((error) => {
        message = String(error)
      })
      expect(message).toMatch(/schema\.(location|title): the (field was removed|type was)/)
      await running.restart(configOf({ location: { type: 'geo', index: true } }))
      expect(await found(running, items)).toEqual(['r'])
    }
  })
}
