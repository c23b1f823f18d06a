/**
 * Batches by filter with functions before and after each change, over kills of the server: each request changes all of
 * its rows or none, as its hook has left them, and each committed change reaches its function once.
 * `PLINTH_BULK_ROWS`, at most 10,000, and `PLINTH_BULK_KILLS` make it larger.
 */
import { describe, expect, test } from 'bun:test'
import { engines } from '../../harness/engines.ts'
import { type ProcessNode, spawnNodes } from '../../harness/processes/nodes.ts'
import { times } from '../../harness/times.ts'

const rowsMax = Number(process.env.PLINTH_BULK_ROWS ?? 2000)
const killsMax = Number(process.env.PLINTH_BULK_KILLS ?? 4)
/** Each request is for one part of the rows. */
const parts = 20
const partRows = rowsMax / parts

const text = `{ type: 'string' }`
const configText = `export default {
  databases: { shared: { tables: {
    items: { schema: { part: { type: 'number' }, by: ${text}, stamp: ${text} }, access: {} },
    ledger: { schema: { entry: ${text} }, access: {} },
  } } },
}`
const functionsText = `import { functionsFor } from 'plinth/functions'
const { before, onChange } = functionsFor()
export const stamp = before('shared.items', ['update', 'delete'], ({ operation, row }) =>
  operation === 'update' ? { ...row, stamp: row.by + '!' } : row)
export const keep = onChange('shared.items', { on: ['update', 'delete'], retries: 100 }, async (event, ctx) => {
  const { id, stamp } = event.after ?? event.previous
  await ctx.service.db('shared').ledger.insert({ entry: event.operation + ' ' + id + ' ' + stamp })
})
`
const tables = '/api/db/shared/tables'

interface Item {
  readonly id: string
  readonly part: number
  readonly by: string
  readonly stamp: string
}

async function rowsOf<Row>({ server }: ProcessNode, table: string): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (let after = ''; ; ) {
    const { body } = await server.service.get(`${tables}/${table}?limit=1000&sort=id:asc&after=${after}`)
    rows.push(...body.items)
    if (!body.hasMore) return rows
    after = encodeURIComponent(body.cursor)
  }
}

let requests = 0

/** Sends the request of each part until it is carried out, some at a time; kills the server while they run. */
async function changeAll(
  node: ProcessNode,
  chosen: readonly number[],
  kills: number,
  requestOf: (by: string) => object,
): Promise<void> {
  const waiting = [...chosen]
  let killed = 0
  let changed = 0
  const restarts: Promise<void>[] = []
  await Promise.all(
    times(4, async () => {
      for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
        await node.up()
        const by = `${part}-${requests++}`
        const filter = [['part', '==', part]]
        const request = node.server.service.post(`${tables}/items/batch-by-filter`, { filter, ...requestOf(by) })
        const answer = await request.catch(() => null)
        if (answer?.status === 200) {
          changed++
          // The others are under way.
          if (killed < kills && changed > (killed * chosen.length) / (kills + 1)) {
            killed++
            restarts.push(node.restart())
          }
          expect(answer.body).toEqual({ processed: partRows, succeeded: partRows })
          continue
        }
        // Without an answer all rows have changed or none has.
        await node.up()
        if (!(await isChanged(node, part, by))) waiting.push(part)
      }
    }),
  )
  await Promise.all(restarts)
  // Each kill leaves fewer requests for the next one, since some of those under way have succeeded.
  expect(killed).toBeGreaterThan(0)
}

async function isChanged({ server }: ProcessNode, part: number, by: string): Promise<boolean> {
  const countOf = async (...filter: unknown[]): Promise<number> => {
    const query = encodeURIComponent(JSON.stringify([['part', '==', part], ...filter]))
    return (await server.service.get(`${tables}/items/count?filter=${query}`)).body.total
  }
  const [left, changed] = [await countOf(), await countOf(['by', '==', by])]
  expect([left, changed]).toBeOneOf([
    [0, 0],
    [partRows, 0],
    [partRows, partRows],
  ])
  return left === 0 || changed > 0
}

async function drained({ server }: ProcessNode, expected: number): Promise<void> {
  const unfinished = async (): Promise<number> => {
    const pages = ['waiting', 'running', 'failed'].map((status) =>
      server.service.get(`/api/functions/jobs?status=${status}`),
    )
    return (await Promise.all(pages)).reduce((sum, { body }) => sum + body.items.length, 0)
  }
  const kept = async (): Promise<number> => (await server.service.get(`${tables}/ledger/count`)).body.total
  while ((await kept()) < expected || (await unfinished()) > 0) await new Promise((resolve) => setTimeout(resolve, 100))
}

for (const engine of engines)
  describe(`batches by filter with functions on ${engine.name}`, () => {
    test(
      '[DB-BYFILTER-3, FN-BEFORE-1, FN-CHANGE-1, FN-EFFECT-1] are all or nothing, and each change reaches its function once',
      async () => {
        const cluster = await spawnNodes(configText, engine, 1, { files: { 'functions/index.ts': functionsText } })
        try {
          const [node] = cluster.nodes as [ProcessNode]
          const all = times(parts, (part) => part)
          for (const part of all) {
            const inserts = times(partRows, (n) => ({ id: `i${part}-${n}`, part, by: '', stamp: '' }))
            expect((await node.server.service.post(`${tables}/items/batch`, { inserts })).status).toBe(200)
          }
          await changeAll(node, all, Math.ceil(killsMax / 2), (by) => ({ action: 'update', data: { by } }))
          const updated = await rowsOf<Item>(node, 'items')
          expect(updated).toHaveLength(rowsMax)
          expect(updated.filter(({ by, stamp }) => by === '' || stamp !== `${by}!`)).toEqual([])
          const removed = all.filter((part) => part % 2 === 0)
          await changeAll(node, removed, Math.floor(killsMax / 2), () => ({ action: 'delete' }))
          const left = await rowsOf<Item>(node, 'items')
          expect(left).toEqual(updated.filter(({ part }) => part % 2 === 1))

          const expected = updated.flatMap(({ id, part, stamp }) =>
            ['update', ...(part % 2 === 0 ? ['delete'] : [])].map((operation) => `${operation} ${id} ${stamp}`),
          )
          await drained(node, expected.length)
          const kept = (await rowsOf<{ entry: string }>(node, 'ledger')).map(({ entry }) => entry)
          expect(kept.length).toBe(expected.length)
          expect([...kept].sort()).toEqual(expected.sort())
        } finally {
          await cluster.remove()
        }
      },
      180_000 + rowsMax * 200 + killsMax * 60_000,
    )
  })
