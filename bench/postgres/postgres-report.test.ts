/** Ratios, and the tables of a run on PostgreSQL. */
import { expect, test } from 'bun:test'
import { Histogram } from '../load/histogram.ts'
import { replaceMeasured } from '../report.ts'
import { scenarios } from '../scenarios.ts'
import { testEnvironment } from '../setup/fixtures/environment.ts'
import { type Competitor, compare, type Round } from './postgres-measure.ts'
import { toMarkdown, toText } from './postgres-report.ts'

function round(units: number, own: Partial<Round> = {}): Round {
  const latencies = new Histogram()
  latencies.add(2)
  return {
    units,
    seconds: 1,
    latencies,
    cpuSeconds: 0.25,
    databaseCpuSeconds: 0.75,
    loadCpuSeconds: 0,
    rowsAdded: 0,
    ...own,
  }
}

const byCompetitor = (...entries: [Competitor, Round[]][]): Map<Competitor, Round[]> => new Map(entries)

test('a ratio is the median over the rounds, each relative to pgbench in the same round', () => {
  const [baseline, node] = compare(
    byCompetitor(['pgbench', [round(1000), round(100), round(1000)]], [1, [round(500), round(50), round(900)]]),
  )
  expect(baseline).toMatchObject({ competitor: 'pgbench', perSecond: 700, ratio: null, cpuRatio: null })
  expect(node?.ratio).toBe(0.5)
})

test('CPU counts everything but the load generator', () => {
  const [baseline, node] = compare(
    byCompetitor(
      ['pgbench', [round(1000)]],
      [2, [round(500, { cpuSeconds: 1.25, databaseCpuSeconds: 0.75, loadCpuSeconds: 9 })]],
    ),
  )
  expect(baseline).toMatchObject({ cpuUs: 1000, databaseCpuUs: 750 })
  expect(node).toMatchObject({ cpuUs: 4000, databaseCpuUs: 1500, cpuRatio: 0.25 })
})

test('figures are null where the kernel does not report CPU or pgbench is missing', () => {
  const [node] = compare(byCompetitor([1, [round(10, { cpuSeconds: null }), round(10)]]))
  expect(node).toMatchObject({ perSecond: 10, cpuUs: null, machineShare: null, ratio: null, cpuRatio: null })
})

const [scenario] = scenarios
if (!scenario) throw new Error('There are no scenarios')
const measurement = {
  scenario,
  rows: 1000,
  competitors: compare(
    byCompetitor(
      ['pgbench', [round(1000)]],
      [1, [round(500)]],
      [2, [round(400)]],
      ['bare 1', [round(1200)]],
      ['bare 2', [round(1000)]],
    ),
  ),
}

test('each number of nodes has its own line below the scenario', () => {
  const lines = toText(measurement).split('\n')
  const names = ['↳ pgbench', '↳ 1 node', '↳ 2 nodes', '↳ bare 1 node', '↳ bare 2 nodes']
  expect(lines.map((text) => text.split('  ')[0])).toEqual([scenario.title, ...names])
  expect(lines[2]).toContain('50%')
  expect(lines[3]).toContain('40%')
})

test('a run replaces only its own part of the page', () => {
  const page = [
    'by hand',
    '<!-- measured: begin -->\n\nof SQLite\n\n<!-- measured: end -->',
    '<!-- measured on PostgreSQL: begin -->',
    'old',
    '<!-- measured on PostgreSQL: end -->',
  ].join('\n\n')
  const plan = { rounds: 1, seconds: 1, warmupSeconds: 1 }
  const sizes = [{ rows: 1000, seededRows: 3000, seedSeconds: 1 }]
  const written = replaceMeasured(page, 'postgres', toMarkdown(testEnvironment, '15.1', plan, sizes, [measurement]))
  expect(written).toContain('of SQLite')
  expect(written).toContain('PostgreSQL 15.1')
  expect(written).toContain(`| ${scenario.title} | 1,000 | 500 | 50% | 50% | 40% | 1.25× | 1.20× |`)
  expect(written).not.toContain('old')
  expect(replaceMeasured(written, 'sqlite', 'new')).toContain('| pgbench/s |')
  expect(() => replaceMeasured('by hand', 'postgres', '')).toThrow('lacks the markers')
})
