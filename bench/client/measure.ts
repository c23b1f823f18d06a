/** Measures the client beside a bare `fetch` and a bare socket, in alternating rounds. */
import { Histogram } from '../load/histogram.ts'
import { compare, type Round } from '../setup/measure.ts'
import type { CallsResult } from './calls.ts'
import { digestOf, type FollowResult, readList } from './follow.ts'
import {
  type Caller,
  type ClientPlan,
  changesPerRequest,
  type Follower,
  inFlight,
  listCount,
  operations,
  rowsPerList,
} from './plan.ts'
import type { ClientMeasurement } from './report.ts'
import { type ClientSetup, rowId, sendBatch } from './setup.ts'

/** The process whose memory `compare` reads is the server; its figures here are those of the program. */
type OnMeasured = (measurement: ClientMeasurement) => void

export async function measureCalls(setup: ClientSetup, plan: ClientPlan, onMeasured: OnMeasured): Promise<void> {
  const { server, worker } = setup
  for (const { name: operation, title } of operations)
    for (const lanes of inFlight) {
      const run = async (caller: Caller): Promise<Round> => {
        const { warmupSeconds, seconds } = plan
        const job = {
          do: 'calls',
          caller,
          operation,
          url: server.url,
          inFlight: lanes,
          warmupSeconds,
          seconds,
        } as const
        const result = (await worker.run(job)) as CallsResult
        const latencies = new Histogram()
        latencies.merge(result.latencies)
        const { calls: units, cpuSeconds } = result
        return { units, seconds: result.seconds, cpuSeconds, loadCpuSeconds: null, latencies }
      }
      const baseline = { baseline: { title: 'fetch' }, run: () => run('fetch') }
      const comparison = await compare({ pid: server.pid, run: () => run('client') }, [baseline], plan.rounds)
      onMeasured({ part: 'calls', title: `${title}, ${lanes} in flight`, ...comparison })
    }
}

/** Updates rows of all lists in turn, `perRequest` at once; the last change of each list is that of its first row. */
async function write(url: string, changes: number, perRequest: number, end: string): Promise<number> {
  let written = 0
  for (let request = 0; written < changes; request++) {
    const list = request % listCount
    const updates = Array.from({ length: perRequest }, (_, at) => ({
      id: rowId(list, 1 + ((request * perRequest + at) % (rowsPerList - 1))),
      data: { views: request },
    }))
    await sendBatch(url, 'notes', { updates })
    written += perRequest
  }
  for (let list = 0; list < listCount; list++)
    await sendBatch(url, 'notes', { updates: [{ id: rowId(list, 0), data: { title: end } }] })
  return written + listCount
}

async function followRound(
  { server, worker }: ClientSetup,
  follower: Follower,
  changes: number,
  perRequest: number,
): Promise<Round> {
  const job = { follower, url: server.url, end: crypto.randomUUID() }
  await worker.run({ do: 'open', ...job })
  const followed = worker.run({ do: 'follow', ...job }) as Promise<FollowResult>
  const units = await write(server.url, changes, perRequest, job.end)
  const { seconds, cpuSeconds, digests } = await followed
  await worker.run({ do: 'close', ...job })
  for (const [list, digest] of digests.entries())
    if (digest !== digestOf(await readList(server.url, list)))
      throw new Error(`${follower}: list ${list} differs from the server's`)
  return { units, seconds, cpuSeconds, loadCpuSeconds: null, latencies: null }
}

export async function measureLive(setup: ClientSetup, plan: ClientPlan, onMeasured: OnMeasured): Promise<void> {
  for (const perRequest of changesPerRequest) {
    const run = (follower: Follower) => followRound(setup, follower, plan.changes, perRequest)
    await followRound(setup, 'client', plan.changes / 10, perRequest)
    const baseline = { baseline: { title: 'JSON.parse and array replace' }, run: () => run('socket') }
    const comparison = await compare({ pid: setup.server.pid, run: () => run('client') }, [baseline], plan.rounds)
    const title = perRequest < 10 ? 'One message per change' : `One message per ${perRequest} changes`
    onMeasured({ part: 'live', title, ...comparison })
  }
}
