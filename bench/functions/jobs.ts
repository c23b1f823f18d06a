/**
 * Jobs: the time from the request of a change to the start of its job at 1,000 changes per second, beside that of the
 * request itself; jobs per second of a queue; and calls one after the other, beside a request that runs no function.
 */
import { Histogram } from '../load/histogram.ts'
import { type ServerProcess, type Shared, serviceKey, startServer } from '../setup/processes.ts'

export const changesPerSecond = 1000
const jobs = 5000
/** As many as a transaction adds. */
const jobsTogether = 100
const calls = 1000

type Post = (path: string, body: unknown) => Promise<unknown>

const postTo =
  ({ url }: ServerProcess): Post =>
  async (path, body) => {
    const headers = { 'Content-Type': 'application/json', 'X-Platform-Service-Key': serviceKey }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return response.json()
  }

const nowMs = (): number => performance.timeOrigin + performance.now()

const insert = async (post: Post): Promise<number> => {
  const sentAt = nowMs()
  await post('/api/db/shared/tables/orders', { sentAt })
  return nowMs() - sentAt
}

/** Milliseconds, but for `jobsPerSecond`. */
export interface JobFigures {
  readonly engine: string
  readonly inserts: Histogram
  readonly lags: Histogram
  readonly jobsPerSecond: number
  readonly calls: Histogram
  readonly requests: Histogram
}

interface Times {
  readonly lags: readonly number[]
  readonly jobs: number
  readonly lastMs: number
}

/** What the functions have noted, once there are this many. */
async function timesOf(post: Post, count: (times: Times) => number, expected: number): Promise<Times> {
  const all = { lags: [] as number[], jobs: 0, lastMs: 0 }
  while (count(all) < expected) {
    const { lags, jobs: ran, lastMs } = (await post('/api/fn/times', null)) as Times
    all.lags.push(...lags)
    all.jobs += ran
    all.lastMs = lastMs
    await Bun.sleep(20)
  }
  return all
}

/** Sends inserts by the clock, whether or not the earlier ones have been answered. */
async function measureLag(
  post: Post,
  seconds: number,
): Promise<{ readonly inserts: Histogram; readonly lags: Histogram }> {
  const [inserts, lags] = [new Histogram(), new Histogram()]
  const pending: Promise<void>[] = []
  const total = changesPerSecond * seconds
  const beginMs = performance.now()
  while (pending.length < total) {
    const due = Math.min(total, ((performance.now() - beginMs) * changesPerSecond) / 1000)
    while (pending.length < due) pending.push(insert(post).then((ms) => inserts.add(ms)))
    await Bun.sleep(1)
  }
  await Promise.all(pending)
  for (const lag of (await timesOf(post, (times) => times.lags.length, total)).lags) lags.add(Math.max(0, lag))
  return { inserts, lags }
}

async function measureQueue(post: Post): Promise<number> {
  const beginMs = nowMs()
  const fills = Array.from({ length: jobs / jobsTogether }, () => post('/api/fn/fill', jobsTogether))
  const done = timesOf(post, (times) => times.jobs, jobs)
  await Promise.all(fills)
  return (jobs * 1000) / ((await done).lastMs - beginMs)
}

async function latencyOf(send: () => Promise<unknown>): Promise<Histogram> {
  const latencies = new Histogram()
  for (let call = 0; call < calls; call++) {
    const beginMs = performance.now()
    await send()
    latencies.add(performance.now() - beginMs)
  }
  return latencies
}

/** Starts a server of its own for the measurements. */
export async function measureJobs(
  { engine, shared }: { readonly engine: string; readonly shared: Shared | null },
  folder: string,
  seconds: number,
): Promise<JobFigures> {
  const server = await startServer(folder, shared, 'bench/functions/jobs/plinth.config.ts')
  try {
    const post = postTo(server)
    // The first requests compile statements and start hosts.
    for (let at = 0; at < 200; at++) await insert(post)
    await timesOf(post, (times) => times.lags.length, 200)
    const { inserts, lags } = await measureLag(post, seconds)
    const jobsPerSecond = await measureQueue(post)
    const calls = await latencyOf(() => post('/api/fn/echo', { n: 1 }))
    const requests = await latencyOf(() => post('/api/db/shared/tables/orders/batch', {}))
    return { engine, inserts, lags, jobsPerSecond, calls, requests }
  } finally {
    await server.stop()
  }
}
