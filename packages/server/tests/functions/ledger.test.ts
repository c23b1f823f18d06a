/**
 * A ledger over kills: each write over each write path reaches each function once, and what the functions write is
 * there once, however often the server is killed, or one node of two while the other continues. `PLINTH_LEDGER_WRITES`
 * and `PLINTH_LEDGER_KILLS` make it larger.
 */
import { describe, expect, test } from 'bun:test'
import { createClient, type Room, rooms } from 'plinth-client'
import { type Engine, engines, sharedEngine } from '../harness/engines.ts'
import { type ProcessNode, type ProcessNodes, spawnNodes } from '../harness/processes/nodes.ts'
import type { SpawnedServer } from '../harness/processes/spawn.ts'
import { times } from '../harness/times.ts'

const writesMax = Number(process.env.PLINTH_LEDGER_WRITES ?? 120)
const killsMax = Number(process.env.PLINTH_LEDGER_KILLS ?? 3)

const text = `{ type: 'string' }`
const ledgerTable = `{ schema: { cause: ${text} }, access: {} }`
const configText = `export default {
  databases: { shared: { tables: {
    orders: { schema: { title: ${text} }, access: { insert: true } },
    first: ${ledgerTable},
    second: ${ledgerTable},
    third: ${ledgerTable},
  } } },
  rooms: { desk: {
    access: { join: true },
    messageRate: 1000,
    actions: { save: async (room, player, id) => void await room.db('shared').orders.insert({ id }) },
  } },
}`

/** `two` writes and enqueues in one transaction; the job that it enqueues is the third ledger. */
const functionsText = `import { functionsFor } from 'plinth/functions'
const { onChange, queue, rpc } = functionsFor()
const causeOf = ({ operation, after, previous }) => operation + ' ' + (after ?? previous).id
export const one = onChange('shared.orders', { retries: 50 }, async (event, ctx) => {
  await ctx.service.db('shared').first.insert({ cause: causeOf(event) })
})
export const two = onChange('shared.orders', { retries: 50, on: ['insert', 'update'] }, (event, ctx) =>
  ctx.service.db('shared').transaction(async (tx) => {
    tx.second.insert({ cause: causeOf(event) })
    await ctx.enqueue('three', { cause: causeOf(event) })
  }))
export const three = queue('three', { retries: 50 }, async ({ cause }, ctx) => {
  await ctx.service.db('shared').third.insert({ cause })
})
export const save = rpc({ caller: 'service' }, async (id, ctx) => {
  await ctx.service.db('shared').orders.insert({ id })
})
`

const ledgers = ['first', 'second', 'third'] as const
const orders = '/api/db/shared/tables/orders'

/** Users in the room, through whose actions rows are written, by the address of their server. */
const visits = new Map<string, { readonly client: { close(): void }; readonly room: Promise<Room> }>()

function leaveRoom(url: string): void {
  visits.get(url)?.client.close()
  visits.delete(url)
}

function roomOf(server: SpawnedServer): Promise<Room> {
  const { url } = server
  const visit = visits.get(url)
  if (visit) return visit.room
  const token = server.token('ann')
  const client = createClient(url, [rooms], { getToken: () => token })
  const room = client.room('desk', 'one')
  const joined = room.join().then(() => room)
  visits.set(url, { client, room: joined })
  joined.catch(() => leaveRoom(url))
  return joined
}

/**
 * The write paths; each inserts the record `o{at}`, and the one by filter updates an earlier one, if that was stored.
 */
const paths: readonly ((server: SpawnedServer, at: number) => Promise<unknown>)[] = [
  ({ service }, at) => service.post(orders, { id: `o${at}` }),
  ({ service }, at) => service.post(`${orders}/batch`, { inserts: [{ id: `o${at}` }] }),
  ({ service }, at) =>
    service.post(`${orders}/batch-by-filter`, {
      action: 'update',
      filter: [['id', '==', `o${at - paths.length - 2}`]],
      data: { title: 'marked' },
    }),
  ({ service }, at) => service.post(`${orders}?upsert=true`, { id: `o${at}` }),
  ({ service }, at) => service.post(`${orders}/batch?upsert=true`, { inserts: [{ id: `o${at}` }] }),
  ({ service }, at) =>
    service.post('/api/db/shared/transaction', { operations: [{ table: 'orders', insert: { id: `o${at}` } }] }),
  ({ service }, at) => service.post('/api/fn/save', `o${at}`),
  async (server, at) => (await roomOf(server)).send('save', `o${at}`, { timeout: 5000 }),
]

const all = async (server: SpawnedServer, table: string): Promise<readonly Record<string, string>[]> => {
  const items: Record<string, string>[] = []
  for (let after = ''; ; ) {
    const page = `limit=100&sort=id:asc&after=${encodeURIComponent(after)}`
    const { body } = await server.service.get(`/api/db/shared/tables/${table}?${page}`)
    items.push(...body.items)
    if (!body.hasMore) return items
    after = body.cursor
  }
}

/** Until every change has become its jobs, and every job is finished. */
async function drained(server: SpawnedServer, expected: number): Promise<void> {
  for (;;) {
    const unfinished = await Promise.all(
      ['waiting', 'running', 'failed'].map(
        async (status) =>
          (await server.service.get(`/api/functions/jobs?status=${status}`)).body.items.length as number,
      ),
    )
    if (unfinished.every((count) => count === 0)) {
      const counts = await Promise.all(ledgers.map(async (table) => (await all(server, table)).length))
      if (counts.every((count) => count >= expected)) return
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Writes on all nodes, which are killed in turn; a node starts again once the others have written a little more. */
async function writeAll({ nodes }: ProcessNodes): Promise<void> {
  let next = 0
  let kills = 0
  const restarts: Promise<void>[] = []
  const isDue = () => kills < killsMax && next >= Math.ceil((writesMax * (kills + 1)) / (killsMax + 1)) - 4
  const killOne = (): void => {
    const node = nodes[kills++ % nodes.length] as ProcessNode
    const { url } = node.server
    const until = Math.min(writesMax, next + Math.ceil(writesMax / (killsMax + 1) / 2))
    const othersWrite = async (): Promise<void> => {
      leaveRoom(url)
      while (nodes.length > 1 && next < until) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    restarts.push(node.restart(othersWrite))
  }
  await Promise.all(
    times(8, async (writer) => {
      const node = nodes[writer % nodes.length] as ProcessNode
      while (next < writesMax) {
        await node.up()
        const at = next++
        if (at >= writesMax) return
        if (isDue()) killOne()
        // A write whose answer is lost may have happened or not: the ledger must agree with the table.
        await paths[at % paths.length]?.(node.server, at).catch(() => null)
      }
    }),
  )
  await Promise.all(restarts)
}

async function expectLedger(engine: Engine, count: number): Promise<void> {
  const cluster = await spawnNodes(configText, engine, count, { files: { 'functions/index.ts': functionsText } })
  const [{ server }] = cluster.nodes as [ProcessNode]
  try {
    await writeAll(cluster)
    const expected = (await all(server, 'orders'))
      .flatMap(({ id, title }) => [`insert ${id}`, ...(title === 'marked' ? [`update ${id}`] : [])])
      .sort()
    expect(expected.length).toBeGreaterThan(writesMax / 2)
    // Each path has written.
    const used = expected.map((cause) => (cause.startsWith('update') ? 2 : Number(cause.slice(8)) % paths.length))
    expect(new Set(used).size).toBe(paths.length)
    await drained(server, expected.length)
    for (const table of ledgers)
      expect((await all(server, table)).map(({ cause }) => cause as string).sort()).toEqual(expected)
  } finally {
    for (const url of visits.keys()) leaveRoom(url)
    await cluster.remove()
  }
}

const timeoutMs = killsMax * 60_000 + writesMax * 1000 + 60_000

for (const engine of engines)
  describe(`the ledger on ${engine.name}`, () => {
    test(
      '[FN-CHANGE-1, FN-EFFECT-1, FN-JOB-3, FN-TX-1] each change reaches each function once, over kills of the server',
      () => expectLedger(engine, 1),
      timeoutMs,
    )
  })

if (sharedEngine)
  describe('the ledger of two nodes', () => {
    test(
      '[FN-CHANGE-1, FN-EFFECT-1, FN-JOB-3, FN-NODE-1, FN-TX-1] each change reaches each function once, over kills of one node',
      () => expectLedger(sharedEngine as Engine, 2),
      timeoutMs,
    )
  })
