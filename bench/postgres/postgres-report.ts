/** Formats the figures of a run on PostgreSQL: the table on the terminal, and its part of `docs/benchmarks.md`. */

import { type Cells, decimal, integer, markdownTable, measuredWith, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import { median, type Plan } from '../setup/measure.ts'
import type { Competitor, CompetitorFigures, PostgresMeasurement } from './postgres-measure.ts'

/** How long seeding a table size took. */
export interface PostgresSize {
  readonly rows: number
  readonly seededRows: number
  readonly seedSeconds: number
}

const columns = [
  'what',
  'per second',
  'p50 ms',
  'p99 ms',
  'CPU µs',
  'of it PostgreSQL',
  'machine',
  'ratio',
  'CPU ratio',
]

const nameOf = (competitor: Competitor): string => {
  if (competitor === 'pgbench') return 'pgbench'
  return competitor === 1 || competitor === 'bare 1' ? `${competitor} node` : `${competitor} nodes`
}

/** CPU per unit of the most nodes by that of one. */
function growthOf(competitors: readonly CompetitorFigures[], most: number, kind: '' | 'bare ' = ''): string {
  const cpuOf = (count: number): number =>
    competitors.find(({ competitor }) => String(competitor) === `${kind}${count}`)?.cpuUs ?? Number.NaN
  const growth = cpuOf(most) / cpuOf(1)
  return Number.isNaN(growth) ? '' : `${growth.toFixed(2)}×`
}

/** A line for the scenario, and one for pgbench and each number of nodes. */
const linesOf = ({ scenario, competitors }: PostgresMeasurement): Cells[] => [
  [scenario.title, ...columns.slice(1).map(() => '')],
  ...competitors.map((figures) => [`↳ ${nameOf(figures.competitor)}`, ...cellsOf(figures)]),
]

const cellsOf = (figures: CompetitorFigures): Cells => [
  integer(figures.perSecond),
  decimal(figures.p50Ms, 2),
  decimal(figures.p99Ms, 2),
  decimal(figures.cpuUs, 1),
  decimal(figures.databaseCpuUs, 1),
  percent(figures.machineShare),
  percent(figures.ratio),
  percent(figures.cpuRatio),
]

const aligned = (cells: Cells): string =>
  cells.map((cell, at) => (at === 0 ? cell.padEnd(40) : cell.padStart(at === 5 ? 17 : 10))).join(' ')

/** The measurement as aligned lines for a terminal. */
export const toText = (measurement: PostgresMeasurement): string => linesOf(measurement).map(aligned).join('\n')

export const textHeader = aligned(columns)

/**
 * The page has a line per scenario: pgbench and one node, their ratios, and what a request costs with the most nodes,
 * beside what it costs with as many bare ones.
 */
function pageTable(measurements: readonly PostgresMeasurement[]): string {
  const [{ competitors = [] } = {}] = measurements
  const nodes = competitors.flatMap(({ competitor }) => (typeof competitor === 'number' ? [competitor] : []))
  const most = Math.max(...nodes)
  const growth = `CPU of ${nameOf(most)} by 1`
  const head = ['what', 'pgbench/s', '1 node/s', '1 node', '1 node: CPU', `${nameOf(most)}: CPU`, growth, 'bare']
  const lines = measurements.map(({ scenario, competitors: compared }) => {
    const find = (wanted: Competitor) => compared.find(({ competitor }) => competitor === wanted)
    return [
      scenario.title,
      integer(find('pgbench')?.perSecond ?? 0),
      integer(find(1)?.perSecond ?? 0),
      percent(find(1)?.ratio ?? null),
      percent(find(1)?.cpuRatio ?? null),
      percent(find(most)?.cpuRatio ?? null),
      growthOf(compared, most),
      growthOf(compared, most, 'bare '),
    ]
  })
  return markdownTable(head, lines)
}

/** All figures of a run as Markdown. */
export function toMarkdown(
  environment: Environment,
  databaseVersion: string,
  plan: Plan,
  sizes: readonly PostgresSize[],
  measurements: readonly PostgresMeasurement[],
): string {
  const sections = [
    measuredWith(environment, `PostgreSQL ${databaseVersion}`, plan),
    busyNote(measurements) ?? '',
    ...sizes.map((size) => sizeSection(size, measurements)),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

function sizeSection({ rows, seededRows, seedSeconds }: PostgresSize, all: readonly PostgresMeasurement[]): string {
  return [
    `${integer(rows)} rows per table, seeded through the batch endpoint of all nodes at ${integer(seededRows / seedSeconds)} rows/s.`,
    pageTable(all.filter((measurement) => measurement.rows === rows)),
  ].join('\n\n')
}

/** Reads from memory use all cores of an otherwise idle machine. */
const idleShareMin = 0.9

/** A warning when the machine had other work during the run; null otherwise, or without figures. */
export function busyNote(measurements: readonly PostgresMeasurement[]): string | null {
  const shares = measurements
    .filter(({ scenario }) => !scenario.writes)
    .flatMap(({ competitors }) => competitors.flatMap(({ machineShare }) => machineShare ?? []))
  if (shares.length === 0) return null
  const share = median(shares)
  if (share >= idleShareMin) return null
  return `The machine had other work during this run: reads at full load got only ${percent(share)} of it. Trust the CPU ratios more than the throughput.`
}
