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
  Math.round(figures.perSecond).toLocaleString('en-US'),
  decimal(figures.p50Ms, 2),
  decimal(figures.p99Ms, 2),
  decimal(figures.cpuUs, 1),
  percent(figures.serverShare),
]

function ratioCells({ ratio, cpuRatio, baseline }: BaselineFigures<BaselineLine>): Cells {
  const budget = baseline.budget === null ? '' : `≥ ${percent(baseline.budget)} ${ratio >= baseline.budget ? '✓' : '✗'}`
  return [percent(ratio), percent(cpuRatio), budget]
}

export const percent = (share: number | null): string => (share === null ? '' : `${Math.round(share * 100)} %`)
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

/** All figures of a run as Markdown. */
export function toMarkdown(
  environment: Environment,
  plan: Plan,
  basics: Basics,
  measurements: readonly Measurement[],
): string {
  const note = busyNote(measurements) ?? ''
  const sections = [environmentSection(environment, plan), note, basicsSection(basics), flatSection(measurements)]
  for (const { rows } of basics.sizes) {
    const lines = measurements.filter((measurement) => measurement.rows === rows).flatMap(linesOf)
    sections.push(`### ${rows.toLocaleString('en-US')} rows\n\n${markdownTable(columns, lines)}`)
  }
  return sections.filter((section) => section !== '').join('\n\n')
}

const environmentSection = (environment: Environment, plan: Plan): string =>
  measuredWith(environment, `SQLite ${environment.sqlite}`, plan)

/** The machine, the versions, and what was repeated how often. */
export function measuredWith(
  environment: Environment,
  database: string,
  plan: Plan,
  rounds = `${plan.rounds} rounds of ${plan.seconds} s each, after a warm-up of ${plan.warmupSeconds} s that is not counted.`,
): string {
  return [
    `Measured on ${environment.date}: ${environment.processor}, ${environment.cores} cores, ${environment.memoryGiB} GiB of memory, Linux ${environment.kernel},`,
    `${environment.fileSystem} file system, Bun ${environment.bun}, ${database}.`,
    rounds,
  ].join('\n')
}

function basicsSection({ startEmptyMs, idleBytes, sizes }: Basics): string {
  const verdict = (good: boolean): string => (good ? '✓' : '✗')
  const lines: Cells[] = [
    [
      'Start on an empty folder',
      `${Math.round(startEmptyMs)} ms`,
      `< ${startBudgetMs} ms ${verdict(startEmptyMs < startBudgetMs)}`,
    ],
    ['Idle memory', `${megabytes(idleBytes)} MB`, `< 100 MB ${verdict((idleBytes ?? 0) < idleBudgetBytes)}`],
  ]
  for (const size of sizes) {
    const name = `${size.rows.toLocaleString('en-US')} rows per table`
    const rate = Math.round(size.seededRows / size.seedSeconds).toLocaleString('en-US')
    lines.push(
      [
        `Start on ${name}`,
        `${Math.round(size.startMs)} ms`,
        `< ${startBudgetMs} ms ${verdict(size.startMs < startBudgetMs)}`,
      ],
      [`Seeding ${name} through the batch endpoint`, `${rate} rows/s, ${megabytes(size.dataBytes)} MB on disk`, ''],
    )
  }
  return markdownTable(['process', 'measured', 'budget'], lines)
}

/** CPU per unit by size: what is indexed must not cost more in a larger table. */
function flatSection(measurements: readonly Measurement[]): string {
  const sizes = [...new Set(measurements.map(({ rows }) => rows))]
  if (sizes.length < 2) return ''
  const titles = [...new Set(measurements.map(({ scenario }) => scenario.title))]
  const lines = titles.map((title) => {
    const costs = sizes.map(
      (rows) => measurements.find((each) => each.rows === rows && each.scenario.title === title)?.cpuUs ?? null,
    )
    const [first] = costs
    const last = costs.at(-1)
    const growth = first && last ? `× ${(last / first).toFixed(2)}` : ''
    return [title, ...costs.map((cost) => decimal(cost, 1)), growth]
  })
  const head = ['CPU µs per request or row', ...sizes.map((rows) => `${rows.toLocaleString('en-US')} rows`), 'growth']
  return markdownTable(head, lines)
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

/** Markers around the generated parts of the page; a run replaces only its own part. */
const markers = {
  sqlite: {
    begin: '<!-- measured: begin (written by `npm run bench -- --write`) -->',
    end: '<!-- measured: end -->',
  },
  users: {
    begin: '<!-- measured users: begin (written by `npm run bench -- --users --write`) -->',
    end: '<!-- measured users: end -->',
  },
  storage: {
    begin: '<!-- measured files: begin (written by `npm run bench -- --storage --write`) -->',
    end: '<!-- measured files: end -->',
  },
  functions: {
    begin: '<!-- measured functions: begin (written by `npm run bench -- --functions --write`) -->',
    end: '<!-- measured functions: end -->',
  },
  queries: {
    begin: '<!-- measured queries: begin (written by `npm run bench -- --queries --write`) -->',
    end: '<!-- measured queries: end -->',
  },
  overload: {
    begin: '<!-- measured overload: begin (written by `npm run bench -- --overload --write`) -->',
    end: '<!-- measured overload: end -->',
  },
  start: {
    begin: '<!-- measured starts: begin (written by `npm run bench -- --start --write`) -->',
    end: '<!-- measured starts: end -->',
  },
  kv: {
    begin: '<!-- measured key-value: begin (written by `npm run bench -- --kv --write`) -->',
    end: '<!-- measured key-value: end -->',
  },
  analytics: {
    begin: '<!-- measured analytics: begin (written by `npm run bench -- --analytics --write`) -->',
    end: '<!-- measured analytics: end -->',
  },
  postgres: {
    begin: '<!-- measured on PostgreSQL: begin (written by `npm run bench -- --postgres --write`) -->',
    end: '<!-- measured on PostgreSQL: end -->',
  },
  live: {
    begin: '<!-- measured live: begin (written by `npm run bench -- --live --write`) -->',
    end: '<!-- measured live: end -->',
  },
  client: {
    begin: '<!-- measured client: begin (written by `npm run bench -- --client --write`) -->',
    end: '<!-- measured client: end -->',
  },
  sql: {
    begin: '<!-- measured SQL: begin (written by `npm run bench -- --sql --write`) -->',
    end: '<!-- measured SQL: end -->',
  },
  rooms: {
    begin: '<!-- measured rooms: begin (written by `npm run bench -- --rooms --write`) -->',
    end: '<!-- measured rooms: end -->',
  },
  vector: {
    begin: '<!-- measured vectors: begin (written by `npm run bench -- --vector --write`) -->',
    end: '<!-- measured vectors: end -->',
  },
} as const

export type MeasuredPart = keyof typeof markers

/** Replaces one generated part of the page and keeps the rest. Throws when the markers are missing. */
export function replaceMeasured(page: string, part: MeasuredPart, markdown: string): string {
  const marker = markers[part]
  const begin = page.indexOf(marker.begin)
  const end = page.indexOf(marker.end)
  if (begin < 0 || end < begin) throw new Error(`The page lacks the markers ${marker.begin} and ${marker.end}`)
  return `${page.slice(0, begin + marker.begin.length)}\n\n${markdown}\n\n${page.slice(end)}`
}
