/**
 * A ledger over kills: each write over each write path reaches each function once, and what the functions write is
 * there once, however often the server is killed. `PLINTH_LEDGER_WRITES` and `PLINTH_LEDGER_KILLS` make it larger.
 */
import { describe, expect, test } from 'bun:test'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'

const writesMax = Number(process.env.PLINTH_LEDGER_WRITES ?? 120)
const killsMax = Number(process.env.PLINTH_LEDGER_KILLS ?? 3)

const text = `{ type: 'string' }`
const configText = `export default {
  databases: { shared: { tables: {
    orders: { schema: { title: ${text} }, access: {} },
    first: { schema: { cause: ${text} }, access: {} },
    second: { schema: { cause: ${text} }, access: {} },
  } } },
}`

const functionsText = `import { functionsFor } from 'plinth/functions'
const { onChange, rpc } = functionsFor()
const keep = (table) => async ({ operation, after, previous, change }, ctx) => {
  await ctx.service.db('shared')[table].insert({ cause: operation + ' ' + (after ?? previous).id })
}
export const one = onChange('shared.orders', { retries: 50 }, keep('first'))
export const two = onChange('shared.orders', { retries: 50, on: ['insert', 'delete'] }, keep('second'))
export const save = rpc({ caller: 'service' }, async (id, ctx) => {
  await ctx.service.db('shared').orders.insert({ id })
})
`

type Answer = Promise<{ readonly status: number }>

/** The write paths; each inserts a record with an id. */
const paths: readonly ((server: SpawnedServer, id: string) => Answer)[] = [
  ({ service }, id) => service.post('/api/db/shared/tables/orders', { id }),
  ({ service }, id) => service.post('/api/db/shared/tables/orders/batch', { inserts: [{ id }] }),
  ({ service }, id) => service.post('/api/db/shared/tables/orders?upsert=true', { id }),
  ({ service }, id) =>
    service.post('/api/db/shared/transaction', { operations: [{ table: 'orders', insert: { id } }] }),
  ({ service }, id) => service.post('/api/fn/save', id),
]

const all = async (server: SpawnedServer, table: string): Promise<readonly Record<string, string>[]> => {
  const items: Record<string, string>[] = []
  for (let cursor = ''; ; ) {
    const after = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { body } = await server.service.get(`/api/db/shared/tables/${table}?limit=100&sort=id:asc${after}`)
    items.push(...body.items)
    cursor = body.cursor ?? ''
    if (cursor === '') return items
  }
}

/** Until no job is unfinished, and none is added any more. */
async function drained(server: SpawnedServer, expected: number): Promise<void> {
  for (;;) {
    const counts = await Promise.all(['first', 'second'].map(async (table) => (await all(server, table)).length))
    const unfinished = await Promise.all(
      ['waiting', 'running', 'failed'].map(
        async (status) =>
          (await server.service.get(`/api/functions/jobs?status=${status}`)).body.items.length as number,
      ),
    )
    if (unfinished.every((count) => count === 0) && counts.every((count) => count >= expected)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

for (const engine of engines)
  describe(`the ledger on ${engine.name}`, () => {
    test(
      '[FN-CHANGE-1, FN-EFFECT-1, FN-JOB-3] each change reaches each function once, over kills of the server',
      async () => {
        const server = await spawnServer(configText, engine, { files: { 'functions/index.ts': functionsText } })
        try {
          let next = 0
          for (let kill = 0; kill <= killsMax; kill++) {
            const until = Math.ceil((writesMax * (kill + 1)) / (killsMax + 1))
            const writers = Array.from({ length: 8 }, async () => {
              while (next < until) {
                const at = next++
                // A write whose answer is lost may have happened or not: the ledger must agree with the table.
                await paths[at % paths.length]?.(server, `o${at}`).catch(() => null)
              }
            })
            if (kill === killsMax) await Promise.all(writers)
            else {
              while (next < until - 4) await new Promise((resolve) => setTimeout(resolve, 1))
              await server.kill()
              await Promise.all(writers)
              await server.start()
            }
          }
          const orders = (await all(server, 'orders')).map(({ id }) => `insert ${id}`).sort()
          expect(orders.length).toBeGreaterThan(writesMax / 2)
          await drained(server, orders.length)
          for (const table of ['first', 'second'])
            expect((await all(server, table)).map(({ cause }) => cause as string).sort()).toEqual(orders)
        } finally {
          await server.remove()
        }
      },
      killsMax * 60_000 + writesMax * 1000 + 60_000,
    )
  })
