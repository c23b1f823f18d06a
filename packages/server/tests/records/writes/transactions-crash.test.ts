/**
 * Transactions of clients, of functions and of jobs in one history, over kills of their servers: it is serializable,
 * each one whose success was announced is there, and each job is done once. `PLINTH_TRANSFERS` (of each of fifty
 * workers) and `PLINTH_TRANSFER_KILLS` make it larger.
 */
import { describe, expect, test } from 'bun:test'
import { createClient, isPlinthError, records } from 'plinth-client'
import { type Engine, engines, sharedEngine } from '../../harness/engines.ts'
import { type ProcessNode, type ProcessNodes, spawnNodes } from '../../harness/processes/nodes.ts'
import {
  accountIds,
  balanceOfEach,
  configText,
  type Database,
  functionsText,
  listTables,
  type Mark,
  type Plan,
  runPlan,
  stateOf,
} from '../../harness/records/mixed-transactions.ts'
import { findStateAnomaly, type ObservedStates } from '../../harness/records/serializability.ts'
import { times } from '../../harness/times.ts'

const workers = 50
const plansEach = Number(process.env.PLINTH_TRANSFERS ?? 6)
const killsMax = Number(process.env.PLINTH_TRANSFER_KILLS ?? 2)
const tables = '/api/db/shared/tables'

const paths = ['client', 'function', 'job'] as const

/** When a transaction began, and how it ended: null where its end is not known. */
interface Call {
  readonly begin: number
  readonly end: number | null
  readonly mark: Mark | null
}

const connect = (url: string): Database =>
  createClient(url, [records], { timeout: 600_000 }).db() as unknown as Database

/** Runs a plan on a node; null where a job will run it. Rejects where it is not known whether it was committed. */
async function run({ server }: ProcessNode, plan: Plan, path: (typeof paths)[number]): Promise<Mark | null> {
  if (path === 'client') return runPlan(connect(server.url), plan)
  const job = { queue: 'work', input: plan }
  const [target, body] = path === 'job' ? ['/api/functions/jobs', job] : ['/api/fn/call', plan]
  const response = await server.service.post(target as string, body)
  if (response.status >= 300) throw new Error(`${path}: ${response.status} ${response.text}`)
  return path === 'job' ? null : response.body
}

async function rowsOf({ server }: ProcessNode, table: string): Promise<readonly Record<string, string>[]> {
  const rows: Record<string, string>[] = []
  for (let after = ''; ; ) {
    const { body } = await server.service.get(`${tables}/${table}?limit=1000&sort=id:asc&after=${after}`)
    rows.push(...body.items)
    if (!body.hasMore) return rows
    after = encodeURIComponent(body.cursor)
  }
}

async function jobsEnded({ server }: ProcessNode): Promise<void> {
  for (const status of ['waiting', 'running', 'failed'])
    while ((await server.service.get(`/api/functions/jobs?status=${status}`)).body.items.length > 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
}

/** The states of all accounts and lists as they are. */
async function readStates(node: ProcessNode): Promise<Record<string, string>> {
  const accounts = (await rowsOf(node, 'accounts')).map(({ id, by }) => [id, by])
  const lists = Object.entries(listTables).map(async ([key, table]) => {
    const filter = encodeURIComponent(JSON.stringify([['key', '==', key]]))
    const { body } = await node.server.service.get(`${tables}/${table}?limit=1000&sort=at:asc&filter=${filter}`)
    return [key, stateOf(body.items)]
  })
  return Object.fromEntries([...accounts, ...(await Promise.all(lists))])
}

/** Runs the plans of all workers while nodes are killed in turn. Returns each plan's call. */
async function runAll({ nodes }: ProcessNodes): Promise<{ calls: ReadonlyMap<string, Call>; clock: number }> {
  const calls = new Map<string, Call>()
  let clock = 0
  let ended = 0
  let kills = 0
  const restarts: Promise<void>[] = []
  const killIfDue = (): void => {
    if (kills >= killsMax || ended < ((kills + 1) * workers * plansEach) / (killsMax + 1)) return
    restarts.push((nodes[kills++ % nodes.length] as ProcessNode).restart())
  }
  await Promise.all(
    times(workers, async (worker) => {
      const node = nodes[worker % nodes.length] as ProcessNode
      const path = paths[Math.floor(worker / nodes.length) % paths.length] as (typeof paths)[number]
      for (let round = 0; round < plansEach; round++) {
        const id = `${worker}-${round}`
        const plan: Plan = { id, kind: (worker + round) % 2 ? 'transfer' : 'edit', seed: worker * plansEach + round }
        await node.up()
        const begin = clock++
        const mark = await run(node, plan, path).catch((error: unknown) => {
          // A request to a server that was killed may have had its effect or not; nothing else may fail.
          if (isPlinthError(error) && error.status >= 400 && error.status < 500) throw error
          return null
        })
        calls.set(id, { begin, end: mark && clock++, mark })
        ended++
        killIfDue()
      }
    }),
  )
  await Promise.all(restarts)
  return { calls, clock }
}

async function expectSerializable(engine: Engine, count: number): Promise<void> {
  const cluster = await spawnNodes(configText, engine, count, { files: { 'functions/index.ts': functionsText } })
  try {
    const [node] = cluster.nodes as [ProcessNode]
    const inserts = accountIds.map((id) => ({ id, balance: balanceOfEach, by: '' }))
    expect((await node.server.service.post(`${tables}/accounts/batch`, { inserts })).status).toBe(200)
    const initial = await readStates(node)
    const { calls, clock } = await runAll(cluster)
    await jobsEnded(node)

    const marks = await rowsOf(node, 'marks')
    const committed = new Map(marks.map(({ plan = '', id = '' }) => [plan, id]))
    expect(committed.size).toBe(marks.length)
    const written = marks.map(({ id = '', plan = '', reads = '', left = '' }): ObservedStates => {
      const { begin, end } = calls.get(plan) as Call
      return { id, begin, end: end ?? clock, reads: JSON.parse(reads), left: JSON.parse(left) }
    })
    const onlyRead: ObservedStates[] = []
    for (const { begin, end, mark } of calls.values()) {
      if (!mark || end === null) continue
      if (Object.keys(mark.left).length > 0) expect(committed.get(mark.plan)).toBe(mark.id)
      else onlyRead.push({ ...mark, begin, end })
    }
    expect(findStateAnomaly([...written, ...onlyRead], initial, await readStates(node))).toBeNull()

    const balances = (await rowsOf(node, 'accounts')).map(({ balance }) => Number(balance))
    expect(balances.reduce((sum, one) => sum + one, 0)).toBe(accountIds.length * balanceOfEach)
    expect(Math.min(...balances)).toBeGreaterThanOrEqual(0)
    const known = [...calls.values()].filter(({ mark }) => mark).length
    console.log(`${calls.size} transactions, ${known} answered, ${marks.length} written, ${onlyRead.length} only read`)
    expect(written.length).toBeGreaterThan((workers * plansEach) / 3)
  } finally {
    await cluster.remove()
  }
}

const timeoutMs = 180_000 + plansEach * 40_000 + killsMax * 60_000

for (const engine of engines)
  describe(`histories of transactions over kills on ${engine.name}`, () => {
    test(
      '[DB-TX-11, DB-TX-12, FN-EFFECT-1] clients, functions and jobs are serializable',
      () => expectSerializable(engine, 1),
      timeoutMs,
    )
  })

if (sharedEngine)
  describe('histories of transactions over kills of two nodes', () => {
    test(
      '[DB-TX-11, DB-TX-12, FN-EFFECT-1] clients, functions and jobs are serializable',
      () => expectSerializable(sharedEngine as Engine, 2),
      timeoutMs,
    )
  })
