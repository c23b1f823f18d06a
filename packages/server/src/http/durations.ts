/** A histogram of seconds. Recording updates three numbers in memory. */

export interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

/** Upper bounds in seconds, from a cached read to a request that hits every timeout. */
export const requestBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

export interface Durations {
  record(seconds: number): void
  /** As Prometheus expects the samples of a histogram. */
  samples(metric: string, labels: Sample['labels']): Sample[]
}

/** `bounds` are the upper bounds of the buckets in seconds, in ascending order. */
export function createDurations(bounds: readonly number[]): Durations {
  /** Per bucket, and those beyond the last. */
  const buckets = new Array<number>(bounds.length + 1).fill(0)
  let sum = 0
  let count = 0
  return {
    record(seconds) {
      let bucket = 0
      while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++
      buckets[bucket] = (buckets[bucket] as number) + 1
      sum += seconds
      count++
    },
    samples(metric, labels) {
      let below = 0
      const samples: Sample[] = bounds.map((le, bucket) => {
        below += buckets[bucket] as number
        return { metricName: `${metric}_bucket`, labels: { ...labels, le }, value: below }
      })
      return [
        ...samples,
        { metricName: `${metric}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
        { metricName: `${metric}_sum`, labels, value: sum },
        { metricName: `${metric}_count`, labels, value: count },
      ]
    },
  }
}
