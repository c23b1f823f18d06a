/** Tables of the client bench. */
import { expect, test } from 'bun:test'
import { Histogram } from '../load/histogram.ts'
import { replaceMeasured } from '../report.ts'
import { testEnvironment } from '../setup/fixtures/environment.ts'
import { compare, type Round } from '../setup/measure.ts'
import { clientPlan } from './plan.ts'
import { type ClientMeasurement, linesOf, toMarkdown } from './report.ts'

/** A second of calls that take 0.2 ms each. */
function round(units: number, cpuSeconds: number | null): Round {
  const latencies = new Histogram()
  latencies.add(0.2)
  return { units, seconds: 1, cpuSeconds, loadCpuSeconds: null, latencies }
}

const measured = async (part: ClientMeasurement['part'], cpuSeconds: number | null): Promise<ClientMeasurement> => {
  const baseline = { baseline: { title: 'fetch' }, run: async () => round(10_000, 0.5) }
  const comparison = await compare({ pid: 0, run: async () => round(8000, cpuSeconds) }, [baseline], 2)
  return { part, title: 'Get', ...comparison }
}

test('a call has its latency in microseconds, and the baseline what the client adds', async () => {
  const [client, baseline] = linesOf(await measured('calls', 0.6))
  expect(client).toEqual(['Get', '8,000', '201', '201', '75.0', '60%', '', '', ''])
  expect(baseline).toEqual(['↳ fetch', '10,000', '201', '201', '50.0', '50%', '80%', '67%', '+ 25.0'])
})

test('a change of a live list has no latency', async () => {
  const [client, baseline] = linesOf(await measured('live', 0.6))
  expect(client).toEqual(['Get', '8,000', '75.0', '60%', '', '', ''])
  expect(baseline).toHaveLength(client?.length ?? 0)
})

test('the client part of the page is replaced, with the load of the machine', async () => {
  const plan = clientPlan({ rounds: 2, seconds: 1, warmupSeconds: 0.3 }, false)
  const measurements = [await measured('calls', 0.6), await measured('live', 0.6)]
  const markdown = toMarkdown(testEnvironment, plan, { before: 0.31, after: 2.04 }, measurements)
  expect(markdown).toContain('before the run: 0.3; at its end: 2.0.')
  expect(markdown).not.toContain('other work')
  expect(toMarkdown(testEnvironment, plan, { before: 3, after: 4 }, measurements)).toContain('trust the CPU')
  expect(markdown).toContain('| Get | 8,000 | 75.0 | fetch | 80% | 25.0 |')
  expect(markdown.indexOf('### Calls')).toBeLessThan(markdown.indexOf('### Changes of live lists'))
  const begin = '<!-- measured client: begin -->'
  const end = '<!-- measured client: end -->'
  const page = `before\n${begin}\nold\n${end}\nafter`
  expect(replaceMeasured(page, 'client', markdown)).toBe(`before\n${begin}\n\n${markdown}\n\n${end}\nafter`)
})
