/**
 * What the server counts about itself, for Prometheus: requests here, the process here, and whatever gauges the
 * features hand in. Counting a request touches two numbers in memory; the text is made when somebody asks.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metric, Registry } from 'prom-client'

/** Counts the requests of one endpoint. */
export interface Meter {
  readonly name: string
  record(status: number, seconds: number): void
}

export interface Metrics {
  /** The meter of an endpoint's name; the same one for the same name, so that counts outlive a reload. */
  meter(endpoint: string): Meter
  started(): void
  ended(): void
  /** Requests being answered right now. */
  readonly inFlight: number
  /** A number read at each scrape; a second gauge of the same name takes the place of the first. */
  gauge(name: string, help: string, read: () => number): void
  /** The same for a number that only rises. */
  counter(name: string, help: string, read: () => number): void
  /** One number for each value of a label, read at each scrape; names are made as for `gauge`. */
  family(metric: Family): void
  /** Everything, in the text format of Prometheus. */
  text(): Promise<string>
  /** Stops what measures in the background. */
  close(): void
}

export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly label: string
  readonly read: () => readonly (readonly [labelValue: string, value: number])[]
}

/** Upper bounds in seconds: from a cached read to a request that has hit every timeout. */
const bucketBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

/** Each sample is one wake-up of an idle process. */
const lagSampleMs = 100

interface Tally extends Meter {
  readonly statuses: Map<number, number>
  /** Requests per bucket of `bucketBounds`, and those beyond the last. */
  readonly buckets: number[]
  seconds: number
  count: number
}

export function createMetrics(): Metrics {
  /** By name. */
  const described = new Map<string, Described>()
  const tallies = new Map<string, Tally>()
  const lag = monitorEventLoopDelay({ resolution: lagSampleMs })
  lag.enable()
  let inFlight = 0

  const describe = (name: string, help: string, type: Described['type'], read: () => Sample[]): void =>
    void described.set(name, { help, type, read })
  const single =
    (type: Described['type']): Metrics['gauge'] =>
    (name, help, read) =>
      describe(name, help, type, () => [{ labels: {}, value: read() }])
  const gauge = single('gauge')
  describe('http_requests_total', 'Requests answered, by endpoint and status.', 'counter', () =>
    [...tallies.values()].flatMap(statusSamples),
  )
  describe('http_request_duration_seconds', 'Time to answer, by endpoint.', 'histogram', () =>
    [...tallies.values()].flatMap(durationSamples),
  )
  gauge('http_requests_in_flight', 'Requests being answered.', () => inFlight)
  describe('process_cpu_seconds_total', 'Processor time used, by mode.', 'counter', cpuSamples)
  gauge('process_resident_memory_bytes', 'Memory held, in bytes.', () => process.memoryUsage.rss())
  gauge('process_heap_bytes', 'Memory of live JavaScript objects, in bytes.', () => process.memoryUsage().heapUsed)
  gauge('process_start_time_seconds', 'Start, in seconds since 1970.', () => performance.timeOrigin / 1000)
  gauge('event_loop_lag_max_seconds', 'Longest time the process was busy with one thing since the last scrape.', () => {
    const seconds = lag.max / 1e9
    lag.reset()
    return seconds
  })

  return {
    meter(name) {
      const tally = tallies.get(name) ?? createTally(name)
      tallies.set(name, tally)
      return tally
    },
    started: () => void inFlight++,
    ended: () => void inFlight--,
    get inFlight() {
      return inFlight
    },
    gauge,
    counter: single('counter'),
    family({ name, help, type, label, read }) {
      describe(name, help, type, () => read().map(([of, value]) => ({ labels: { [label]: of }, value })))
    },
    text: async () => (await toRegistry(described)).metrics(),
    close: () => void lag.disable(),
  }
}

function createTally(name: string): Tally {
  const statuses = new Map<number, number>()
  const buckets = new Array<number>(bucketBounds.length + 1).fill(0)
  return {
    name,
    statuses,
    buckets,
    seconds: 0,
    count: 0,
    record(status, seconds) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      let bucket = 0
      while (bucket < bucketBounds.length && seconds > (bucketBounds[bucket] as number)) bucket++
      buckets[bucket] = (buckets[bucket] as number) + 1
      this.seconds += seconds
      this.count++
    },
  }
}

interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

const statusSamples = ({ name: endpoint, statuses }: Tally): Sample[] =>
  [...statuses].map(([status, value]) => ({ labels: { endpoint, status }, value }))

function durationSamples({ name: endpoint, buckets, seconds, count }: Tally): Sample[] {
  const metricName = 'http_request_duration_seconds'
  let below = 0
  const samples: Sample[] = bucketBounds.map((le, bucket) => {
    below += buckets[bucket] as number
    return { metricName: `${metricName}_bucket`, labels: { endpoint, le }, value: below }
  })
  return [
    ...samples,
    { metricName: `${metricName}_bucket`, labels: { endpoint, le: '+Inf' }, value: count },
    { metricName: `${metricName}_sum`, labels: { endpoint }, value: seconds },
    { metricName: `${metricName}_count`, labels: { endpoint }, value: count },
  ]
}

/** A metric whose numbers are kept elsewhere. */
interface Described {
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly read: () => Sample[]
}

/**
 * What the library prints. Its own counters and histograms hash their labels at every increment, which is a tenth of
 * what a small request costs; and it is loaded when somebody asks, since it takes a tenth of the start.
 */
async function toRegistry(described: ReadonlyMap<string, Described>): Promise<Registry> {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const [name, { help, type, read }] of described) {
    const get = async () => ({ name, help, type, aggregator: 'sum', values: read() })
    registry.registerMetric({ name, help, get, reset() {} } as unknown as Metric)
  }
  return registry
}

/** The library's default metrics describe another runtime; this and the gauges above mean something in this one. */
function cpuSamples(): Sample[] {
  const { user, system } = process.cpuUsage()
  return [
    { labels: { mode: 'user' }, value: user / 1e6 },
    { labels: { mode: 'system' }, value: system / 1e6 },
  ]
}
