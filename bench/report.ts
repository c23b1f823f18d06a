/** Formats figures: the table on the terminal, and the generated part of `docs/benchmarks.md`. */

import { type Baseline, bareHandler } from './scenarios.ts'
import type { Environment } from './setup/environment.ts'
import {
  type BaselineFigures,
  type Comparison,
  type Figures,
  type Measurement,
  median,
  type Plan,
} from './setup/measure.ts'

/** Figures that do not depend on a scenario: start times and idle memory. */
export interface Basics {
  readonly startEmptyMs: number
  readonly idleBytes: number | null
  readonly sizes: readonly SizeBasics[]
}

export interface SizeBasics {
  readonly rows: number
  readonly seedSeconds: number
  readonly seededRows: number
  readonly dataBytes: number
  readonly startMs: number
}

const startBudgetMs = 500
const idleBudgetBytes = 100 * 1024 * 1024

export const columns = [
  'what',
  'per second',
  'p50 ms',
  'p99 ms',
  'CPU µs',
  'core',
  'peak MB',
  'ratio',
  'CPU ratio',
  'budget',
]

export type Cells = readonly string[]

/** The title and the budget of a baseline's line. */
type BaselineLine = Pick<Baseline, 'title' | 'budget'>

/** A comparison with the title of its line. */
export interface Reported extends Comparison<BaselineLine> {
  readonly scenario: { readonly title: string }
  /** A budget without a baseline, and whether it was met. */
  readonly verdict?: string
}

/** The lines of a measurement: the server, then its baselines with the ratios. */
export function linesOf(measurement: Reported): Cells[] {
  const { scenario, baselines, verdict = '' } = measurement
  return [
    [scenario.title, ...figureCells(measurement), megabytes(measurement.peakBytes), '', '', verdict],
    ...baselines.map((baseline) => [
      `↳ ${baseline.baseline.title}`,
      ...figureCells(baseline),
      '',
      ...ratioCells(baseline),
    ]),
  ]
}

const figureCells = (figures: Figures): Cells => [
  integer(figures.perSecond),
  decimal(figures.p50Ms, 2),
  decimal(figures.p99Ms, 2),
  decimal(figures.cpuUs, 1),
  percent(figures.serverShare),
]

function ratioCells({ ratio, cpuRatio, baseline }: BaselineFigures<BaselineLine>): Cells {
  const budget = baseline.budget === null ? '' : `≥ ${percent(baseline.budget)} ${checkMark(ratio >= baseline.budget)}`
  return [percent(ratio), percent(cpuRatio), budget]
}

export const integer = (value: number): string => Math.round(value).toLocaleString('en-US')
/** Whether a budget is met. */
export const checkMark = (isMet: boolean): string => (isMet ? '✓' : '✗')
export const percent = (share: number | null): string => (share === null ? '' : `${Math.round(share * 100)}%`)
export const decimal = (value: number | null, digits: number): string => (value === null ? '' : value.toFixed(digits))
export const megabytes = (bytes: number | null): string =>
  bytes === null ? '' : Math.round(bytes / 1024 / 1024).toString()

/** The measurement as aligned lines for a terminal. */
export function toText(measurement: Reported): string {
  return linesOf(measurement)
    .map((cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(62) : cell.padStart(at === 9 ? 10 : 9))).join(' '))
    .join('\n')
}

export const textHeader = columns
  .map((column, at) => (at === 0 ? column.padEnd(62) : column.padStart(at === 9 ? 10 : 9)))
  .join(' ')

const markdownRow = (cells: Cells): string => `| ${cells.join(' | ')} |`

export const markdownTable = (head: Cells, lines: readonly Cells[]): string =>
  [markdownRow(head), markdownRow(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...lines.map(markdownRow)].join(
    '\n',
  )

/** The page has what readers compare; the terminal also shows latencies under full load and how busy each side was. */
export const pageColumns = ['what', 'per second', 'CPU µs', 'compared with', 'ratio', 'CPU ratio']

/** The lines of a measurement on the page: one for each baseline, the first of them with the figures of the server. */
function pageLinesOf({ scenario, baselines, verdict = '', ...figures }: Reported): Cells[] {
  const title = verdict === '' ? scenario.title : `${scenario.title}: ${verdict}`
  const server = [title, integer(figures.perSecond), decimal(figures.cpuUs, 1)]
  if (baselines.length === 0) return [[...server, '', '', '']]
  return baselines.map(({ baseline, ratio, cpuRatio }, at) => {
    const mark = baseline.budget === null ? '' : ` ${checkMark(ratio >= baseline.budget)}`
    const begin = at === 0 ? server : server.map(() => '')
    return [...begin, baseline.title, `${percent(ratio)}${mark}`, percent(cpuRatio)]
  })
}

/** Measurements as a table of the page. */
export const pageTable = (measurements: readonly Reported[]): string =>
  markdownTable(pageColumns, measurements.flatMap(pageLinesOf))

/** A table without the columns that are named in `hidden`. */
export function withoutColumns(head: Cells, lines: readonly Cells[], hidden: ReadonlySet<string>): string {
  const kept = (cells: Cells): Cells => cells.filter((_, at) => !hidden.has(head[at] ?? ''))
  return markdownTable(kept(head), lines.map(kept))
}

/** All figures of a run as Markdown. */
export function toMarkdown(
  environment: Environment,
  plan: Plan,
  basics: Basics,
  measurements: readonly Measurement[],
): string {
  const sections = [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    busyNote(measurements) ?? '',
    basicsText(basics),
    sizesSection(basics.sizes, measurements),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

/** The machine, the versions, and what was repeated how often, in one line. */
export function measuredWith(
  { date, processor, cores, bun }: Environment,
  database: string,
  { rounds, seconds }: Plan,
  repeated = `${rounds} rounds of ${seconds} s`,
): string {
  return `Measured on ${date}, ${repeated}: ${processor}, ${cores} cores, Bun ${bun}, ${database}.`
}

function basicsText({ startEmptyMs, idleBytes, sizes }: Basics): string {
  const within = (ms: number): string => `${Math.round(ms)} ms ${checkMark(ms < startBudgetMs)}`
  const idle = `${megabytes(idleBytes)} MB ${checkMark((idleBytes ?? 0) < idleBudgetBytes)}`
  const starts = [`on an empty folder ${within(startEmptyMs)}`]
  const largest = sizes.at(-1)
  if (largest) {
    const rate = integer(largest.seededRows / largest.seedSeconds)
    starts.push(
      `with ${integer(largest.rows)} rows per table ${within(largest.startMs)}`,
      `which were seeded at ${rate} rows/s and take ${megabytes(largest.dataBytes)} MB`,
    )
  }
  return `Start ${starts.join(', ')}; budget ${startBudgetMs} ms. Idle memory ${idle}; budget 100 MB.`
}

/** What only the terminal shows, since another scenario says the same. */
const terminalOnly: ReadonlySet<string> = new Set(['point-rule', 'job'])

/** The largest size with the first baseline of each scenario. */
function sizesSection(sizes: readonly SizeBasics[], measurements: readonly Measurement[]): string {
  const shown = sizes.at(-1)
  if (!shown) return ''
  const lines = measurements
    .filter(({ rows, scenario }) => rows === shown.rows && !terminalOnly.has(scenario.name))
    .flatMap(({ baselines, ...measurement }) => pageLinesOf({ ...measurement, baselines: baselines.slice(0, 1) }))
  return [`${integer(shown.rows)} rows per table.`, markdownTable(pageColumns, lines)].join('\n\n')
}

/** Below this share of its core, a saturated bare handler was competing with other processes. */
const idleShareMin = 0.9

/** A warning when the machine had other work during the run; null otherwise. */
export function busyNote(measurements: readonly Measurement[]): string | null {
  const shares = measurements.flatMap(({ baselines }) =>
    baselines.flatMap(({ baseline, serverShare }) =>
      baseline === bareHandler && serverShare !== null ? [serverShare] : [],
    ),
  )
  if (shares.length === 0) return null
  const share = median(shares)
  if (share >= idleShareMin) return null
  return `The machine had other work during this run: the saturated bare handler got only ${percent(share)} of its core. Trust the CPU ratios more than the throughput.`
}

/** Generated parts of the page by the names in their markers; a run replaces only its own part. */
const parts = {
  summary: 'summary',
  sqlite: 'measured',
  growth: 'measured growth',
  peers: 'measured peers',
  users: 'measured users',
  storage: 'measured files',
  functions: 'measured functions',
  queries: 'measured queries',
  overload: 'measured overload',
  start: 'measured starts',
  kv: 'measured key-value',
  analytics: 'measured analytics',
  postgres: 'measured on PostgreSQL',
  live: 'measured live',
  client: 'measured client',
  sql: 'measured SQL',
  rooms: 'measured rooms',
  vector: 'measured vectors',
} as const

type PagePart = keyof typeof parts
export type MeasuredPart = Exclude<PagePart, 'summary'>

/** Where a generated part of the page begins and ends, without its markers. Throws when they are missing. */
function boundsOf(page: string, part: PagePart): readonly [begin: number, end: number] {
  const [first, last] = [`<!-- ${parts[part]}: begin -->`, `<!-- ${parts[part]}: end -->`]
  const begin = page.indexOf(first)
  const end = page.indexOf(last)
  if (begin < 0 || end < begin) throw new Error(`The page lacks the markers ${first} and ${last}`)
  return [begin + first.length, end]
}

/** One generated part of the page, without blank lines around it. */
export const measuredPart = (page: string, part: PagePart): string => page.slice(...boundsOf(page, part)).trim()

/** Replaces one generated part of the page and keeps the rest. */
export function replaceMeasured(page: string, part: PagePart, markdown: string): string {
  const [begin, end] = boundsOf(page, part)
  return `${page.slice(0, begin)}\n\n${markdown}\n\n${page.slice(end)}`
}
