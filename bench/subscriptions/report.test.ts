/** The report of the subscription bench. */
import { expect, test } from 'bun:test'
import { replaceMeasured } from '../report.ts'
import { testEnvironment } from '../setup/fixtures/environment.ts'
import type { LiveFigures } from './measure.ts'
import { busyNote, type LiveMeasurements, toMarkdown } from './report.ts'

const some = { p50Ms: 1, p99Ms: 2 }
const figures: LiveFigures = {
  changesPerSecond: 100,
  deliveriesPerSecond: 50_000,
  responses: some,
  deliveries: some,
  lag: some,
  changeCpuUs: 500,
  deliveryCpuUs: 1.25,
  serverShare: 0.95,
  loadShare: 0.5,
}
const nothing: LiveMeasurements = { fanOut: null, latency: null, slow: null, rules: null, idle: null, matching: null }
const plan = { rounds: 1, seconds: 1, warmupSeconds: 1 }
const fanOut = (baseline: LiveFigures) => [
  { subscribers: 1000, server: figures, baseline, ratio: 0.8, cpuRatio: 0.5, ownCpuUs: 0.75 },
]

test('every fan-out has a row with its ratios to the baseline', () => {
  const markdown = toMarkdown(testEnvironment, plan, {
    ...nothing,
    fanOut: { alone: { ...figures, deliveriesPerSecond: 0, deliveryCpuUs: null }, lines: fanOut(figures) },
  })
  expect(markdown).toContain('| 1,000 | 100 | 50,000 | 2.00 | 1.25 | 80% | 50% |')
})

test('the budget under rules is ten times the throughput of comparable servers', () => {
  const about = { title: 'all', subscribers: 5000, users: 100, receivers: 50 }
  const slow = { ...figures, deliveriesPerSecond: 39_999 }
  const rules = [
    { ...about, figures },
    { ...about, figures: slow },
  ]
  const lines = toMarkdown(testEnvironment, plan, { ...nothing, rules }).split('\n')
  expect(lines.filter((line) => line.includes('≥ 40,000/s')).map((line) => /[✓✗]/.exec(line)?.[0])).toEqual(['✓', '✗'])
})

test('the page shows each kind of subscriptions at its largest number', () => {
  const cost = { changeCpuUs: 1.5, addCpuUs: 9, bytesPerSubscription: 2000 }
  const matching = [1000, 10_000].flatMap((subscriptions) =>
    (['equality', 'order'] as const).map((kind) => ({ kind, subscriptions, ...cost })),
  )
  const lines = toMarkdown(testEnvironment, plan, { ...nothing, matching }).split('\n')
  expect(lines.filter((line) => /^\| \d/.test(line))).toEqual([
    '| 10,000, each filters by one author | 1.50 | 2,000 |',
    '| 10,000, each is a range: not indexed | 1.50 | 2,000 |',
  ])
})

test('the report notes other load on the machine', () => {
  expect(busyNote(fanOut(figures))).toBeNull()
  expect(busyNote(fanOut({ ...figures, serverShare: 0.3 }))).toContain('more than 50% of its core')
  expect(busyNote(fanOut({ ...figures, serverShare: null }))).toBeNull()
})

test('writing the report keeps the rest of the page', async () => {
  const page = await Bun.file(new URL('../../docs/benchmarks.md', import.meta.url)).text()
  const written = replaceMeasured(page, 'live', 'new figures')
  expect(written).toContain('new figures\n\n<!-- measured live: end -->')
  expect(replaceMeasured(written, 'live', 'newer figures')).not.toContain('new figures')
  const [before] = page.split('<!-- measured live: begin')
  expect(written.startsWith(before ?? '?')).toBe(true)
})
