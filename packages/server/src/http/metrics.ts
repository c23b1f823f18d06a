/**
 * Metrics for Prometheus: requests, the process, and the gauges that features register. Recording a request updates two
 * numbers in memory; the text is generated at each scrape.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metric, Registry } from 'prom-client'
import { createDurations, type Durations, requestBounds, type Sample } from './durations.ts'

/** Counts the requests of one endpoint. */
export interface Meter {
  readonly name: string
  record(status: number, seconds: number): void
}

export interface Metrics {
  /** The meter of an endpoint; the same one for the same name, so that counters survive a reload. */
  meter(endpoint: string): Meter
  started(): void
  ended(): void
  /** Requests in progress. */
  readonly inFlight: number
  /** Registers a gauge that is read at each scrape; replaces an earlier one of the same name. */
  gauge(name: string, help: string, read: () => number): void
  /** Registers a counter that is read at each scrape. */
  counter(name: string, help: string, read: () => number): void
  /** Registers a metric with one label, read at each scrape; named as by `gauge`. */
  family(metric: Family): void
  /** Registers a histogram with one label, read at each scrape; named as by `gauge`. */
  histogram(metric: Histogram): void
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>
  /** Stops background measurements. */
  close(): void
}

export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly label: string
  readonly read: () => readonly (readonly [labelValue: string, value: number])[]
}

export interface Histogram extends Omit<Family, 'type' | 'read'> {
  readonly read: () => Iterable<readonly [labelValue: string, durations: Durations]>
}

/** Each sample wakes an idle process. */
const lagSampleMs = 100

interface Tally extends Meter {
  readonly statuses: Map<number, number>
  readonly durations: Durations
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
  describe('http_requests_total', 'HTTP requests by endpoint and status.', 'counter', () =>
    [...tallies.values()].flatMap(statusSamples),
  )
  describe('http_request_duration_seconds', 'Response time by endpoint in seconds.', 'histogram', () =>
    [...tallies.values()].flatMap(durationSamples),
  )
  gauge('http_requests_in_flight', 'HTTP requests in progress.', () => inFlight)
  describe('process_cpu_seconds_total', 'CPU time by mode in seconds.', 'counter', cpuSamples)
  gauge('process_resident_memory_bytes', 'Resident memory in bytes.', () => process.memoryUsage.rss())
  gauge('process_heap_bytes', 'JavaScript heap in use in bytes.', () => process.memoryUsage().heapUsed)
  gauge(
    'process_start_time_seconds',
    'Start time of the process in seconds since 1970.',
    () => performance.timeOrigin / 1000,
  )
  gauge('event_loop_lag_max_seconds', 'Longest event loop delay since the last scrape in seconds.', () => {
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
    histogram({ name, help, label, read }) {
      describe(name, help, 'histogram', () =>
        [...read()].flatMap(([of, durations]) => durations.samples(name, { [label]: of })),
      )
    },
    text: async () => (await toRegistry(described)).metrics(),
    close: () => void lag.disable(),
  }
}

function createTally(name: string): Tally {
  const statuses = new Map<number, number>()
  const durations = createDurations(requestBounds)
  return {
    name,
    statuses,
    durations,
    record(status, seconds) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      durations.record(seconds)
    },
  }
}

const statusSamples = ({ name: endpoint, statuses }: Tally): Sample[] =>
  [...statuses].map(([status, value]) => ({ labels: { endpoint, status }, value }))

const durationSamples = ({ name: endpoint, durations }: Tally): Sample[] =>
  durations.samples('http_request_duration_seconds', { endpoint })

/** A metric whose values are kept elsewhere. */
interface Described {
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly read: () => Sample[]
}

/**
 * Formats metrics with prom-client. Its own counters and histograms hash their labels at every increment, a tenth of
 * the cost of a small request. It is loaded at the first scrape because it would take a tenth of the start-up time.
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

/** The library's default metrics describe another runtime; these apply to this one. */
function cpuSamples(): Sample[] {
  const { user, system } = process.cpuUsage()
  return [
    { labels: { mode: 'user' }, value: user / 1e6 },
    { labels: { mode: 'system' }, value: system / 1e6 },
  ]
}
