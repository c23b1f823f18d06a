import { expect, test } from 'bun:test'
import { createMetrics } from './metrics.ts'

async function lines(metrics: ReturnType<typeof createMetrics>): Promise<Map<string, number>> {
  const text = await metrics.text()
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

test('counts requests by endpoint and status, and sorts durations into buckets', async () => {
  const metrics = createMetrics()
  metrics.meter('records.get').record(200, 0.0004)
  metrics.meter('records.get').record(200, 0.02)
  metrics.meter('records.get').record(404, 99)
  metrics.meter('records.list').record(200, 0.001)
  const samples = await lines(metrics)
  metrics.close()
  expect(samples.get('http_requests_total{endpoint="records.get",status="200"}')).toBe(2)
  expect(samples.get('http_requests_total{endpoint="records.get",status="404"}')).toBe(1)
  const bucket = (le: string) => samples.get(`http_request_duration_seconds_bucket{endpoint="records.get",le="${le}"}`)
  expect([bucket('0.0005'), bucket('0.01'), bucket('0.025'), bucket('30'), bucket('+Inf')]).toEqual([1, 1, 2, 2, 3])
  expect(samples.get('http_request_duration_seconds_count{endpoint="records.get"}')).toBe(3)
  expect(samples.get('http_request_duration_seconds_sum{endpoint="records.get"}')).toBeCloseTo(99.0204)
  expect(samples.get('http_request_duration_seconds_bucket{endpoint="records.list",le="0.001"}')).toBe(1)
})

test('exports process metrics and the gauges of features', async () => {
  const metrics = createMetrics()
  metrics.started()
  metrics.gauge('rooms_open', 'Rooms.', () => 1)
  metrics.gauge('rooms_open', 'Rooms.', () => 7)
  const samples = await lines(metrics)
  metrics.ended()
  metrics.close()
  expect(metrics.inFlight).toBe(0)
  expect(samples.get('http_requests_in_flight')).toBe(1)
  expect(samples.get('rooms_open')).toBe(7)
  for (const name of ['process_resident_memory_bytes', 'process_heap_bytes', 'process_cpu_seconds_total{mode="user"}'])
    expect(samples.get(name)).toBeGreaterThan(0)
  expect(samples.get('event_loop_lag_max_seconds')).toBeGreaterThanOrEqual(0)
})
