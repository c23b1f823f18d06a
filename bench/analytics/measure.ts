/**
 * Measures analytics: every report on millions of events, at rest and while old days are rolled up; incoming events;
 * and the cost of the request log for a point read.
 */
import { msOfId } from '../../packages/server/src/features/analytics/time.ts'
import { rawRetentionMs, rollUpMarginMs } from '../../packages/server/src/limits/analytics.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import type { Baseline } from '../scenarios.ts'
import { clients, pointReads, post } from '../scenarios.ts'
import { type Comparison, compare, median, type Plan, type Round, roundOf } from '../setup/measure.ts'
import { type LoadProcess, type ServerProcess, serviceKey } from '../setup/processes.ts'
import { busyUser, frequentEvent } from './seed.ts'
import type { AnalyticsStore } from './store.ts'

/** A report and its response times in milliseconds. */
export interface ReportTimes {
  readonly title: string
  readonly path: string
  readonly restMs: readonly number[]
  readonly rollUpMs: readonly number[]
}

const events = '/api/analytics/events'
const requests = '/api/analytics/query'
const user = `userId=${busyUser}`

/** Each report with its default and its largest range. */
const reports: readonly (readonly [title: string, path: string])[] = [
  ['Newest 50 events', events],
  ['1,000 of 90 days', `${events}?range=90d&limit=1000`],
  ['50 of one name, 90 days', `${events}?range=90d&event=${frequentEvent}`],
  ['50 of one user, 90 days', `${events}?range=90d&${user}`],
  ['Count and users of 24 hours', `${events}?metric=count`],
  ['Count and users of 90 days', `${events}?metric=count&range=90d`],
  ['The same of one name', `${events}?metric=count&range=90d&event=${frequentEvent}`],
  ['Series of 24 hours by hour', `${events}?metric=timeSeries`],
  ['Series of 90 days by day', `${events}?metric=timeSeries&range=90d&groupBy=day`],
  ['Series of 90 days by minute', `${events}?metric=timeSeries&range=90d&groupBy=minute`],
  ['The same of one name', `${events}?metric=timeSeries&range=90d&groupBy=minute&event=${frequentEvent}`],
  ['Most frequent events of 24 hours', `${events}?metric=topEvents`],
  ['Most frequent events of 90 days', `${events}?metric=topEvents&range=90d`],
  ['Requests: overview of 24 hours', requests],
  ['Requests: overview of 90 days by day', `${requests}?range=90d&groupBy=day`],
  ['Requests: series of 90 days by minute', `${requests}?metric=timeSeries&range=90d&groupBy=minute`],
  ['Requests: endpoints of 90 days', `${requests}?metric=topEndpoints&range=90d`],
]

async function timeReport(server: ServerProcess, path: string): Promise<number> {
  const startedAt = performance.now()
  const response = await fetch(`${server.url}${path}`, { headers: { 'X-Platform-Service-Key': serviceKey } })
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`)
  return performance.now() - startedAt
}

/** Observes in the database when the roll-up begins and ends. */
async function watchRollUp(store: AnalyticsStore) {
  const oldestMs = async (): Promise<number> => msOfId((await store.oldestEvent()) ?? '')
  const firstMs = await oldestMs()
  const dueMs = Date.now() - rawRetentionMs - rollUpMarginMs
  const lastMs = Math.floor(dueMs / 86_400_000) * 86_400_000
  return {
    hasBegun: async () => (await oldestMs()) !== firstMs,
    isDone: async () => (await oldestMs()) >= lastMs,
  }
}

/** Requests all reports several times, then repeatedly while the server rolls up three days. */
export async function measureReports(
  server: ServerProcess,
  store: AnalyticsStore,
  rounds: number,
): Promise<{ times: ReportTimes[]; rollUpSeconds: number }> {
  const { hasBegun, isDone } = await watchRollUp(store)
  const times = reports.map(([title, path]) => ({ title, path, restMs: [] as number[], rollUpMs: [] as number[] }))
  for (const { path } of times) await timeReport(server, path)
  for (let round = 0; round < rounds && !(await hasBegun()); round++)
    for (const { path, restMs } of times) restMs.push(await timeReport(server, path))
  while (!(await hasBegun())) await Bun.sleep(20)
  const begunAt = performance.now()
  while (!(await isDone()))
    for (const { path, rollUpMs } of times) if (!(await isDone())) rollUpMs.push(await timeReport(server, path))
  return { times, rollUpSeconds: (performance.now() - begunAt) / 1000 }
}

type Measured = Comparison<Pick<Baseline, 'title' | 'budget'>>

const visit = (index: number, each: number) => ({
  name: `event-${(index * 7 + each) % 40}`,
  userId: `visitor-${(index * 31 + each) % 5000}`,
  properties: { plan: 'pro', amount: each, source: 'web' },
})

/** Sent with the service key, which may set the user of an event. */
function trackRequest(size: number, index: number): LoadRequest {
  const events = Array.from({ length: size }, (_, each) => visit(index, each))
  const { text, expect } = post('/api/analytics/track', { events }, { status: 200, includes: '"ok":true' })
  return { text: text.replace('\r\n', `\r\nX-Platform-Service-Key: ${serviceKey}\r\n`), expect }
}

/** Events in requests of one and of a hundred, in events per second. */
export async function measureTracking(
  server: ServerProcess,
  load: LoadProcess,
  plan: Plan,
  size: number,
): Promise<Measured> {
  const sent = Array.from({ length: 200 }, (_, index) => trackRequest(size, index))
  const run = async (): Promise<Round> => roundOf(await underLoad(server, load, plan, sent), size)
  return compare({ pid: server.pid, run }, [], plan.rounds)
}

/** Compares point reads with and without the request log. */
export async function measureRequestLog(
  servers: { readonly server: ServerProcess; readonly unlogged: ServerProcess; readonly load: LoadProcess },
  plan: Plan,
  rows: number,
): Promise<Measured> {
  const { server, unlogged, load } = servers
  const sent = pointReads('posts', rows)
  const runOf = (one: ServerProcess) => async () => roundOf(await underLoad(one, load, plan, sent), 1)
  // Two identical servers differ by some percent.
  const baseline = { title: 'the same without the request log', budget: 0.9 }
  return compare({ pid: server.pid, run: runOf(server) }, [{ baseline, run: runOf(unlogged) }], plan.rounds)
}

const underLoad = (
  server: ServerProcess,
  load: LoadProcess,
  plan: Plan,
  sent: Parameters<LoadProcess['run']>[0]['requests'],
) =>
  load.run({
    ports: [server.port],
    connections: clients,
    requests: sent,
    warmupSeconds: plan.warmupSeconds,
    seconds: plan.seconds,
    total: null,
    watched: [[server.pid]],
  })

export const middle = (times: readonly number[]): number | null => (times.length === 0 ? null : median(times))
export const worst = (times: readonly number[]): number | null => (times.length === 0 ? null : Math.max(...times))
