/** Figures of the live bench as tables: on the terminal, and as their part of `docs/benchmarks.md`. */

import { type Cells, decimal, markdownTable, measuredWith, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { FanOut, Idle, Latency, LiveFigures, Matching, Percentiles, Ruled, Slow } from './measure.ts'

/** Everything a run has measured; a part that was not asked for is null. */
export interface LiveMeasurements {
  readonly fanOut: { readonly alone: LiveFigures; readonly lines: readonly FanOut[] } | null
  readonly latency: readonly Latency[] | null
  readonly slow: Slow | null
  readonly rules: readonly Ruled[] | null
  readonly idle: Idle | null
  readonly matching: readonly Matching[] | null
}

/** A heading, the columns, and the lines below them. */
export interface LiveTable {
  readonly title: string
  readonly columns: Cells
  readonly lines: readonly Cells[]
}

/** Ten times the highest figure known of a comparable server: 4,000 changes a second in all, on 2 cores, with rules. */
const ruledBudget = 40_000

const whole = (value: number): string => Math.round(value).toLocaleString('en-US')
const micro = (value: number | null): string => decimal(value, value !== null && value < 10 ? 2 : 1)
const shares = ({ serverShare, loadShare }: LiveFigures): Cells => [percent(serverShare), percent(loadShare)]
const times = ({ p50Ms, p99Ms }: Percentiles): Cells => [decimal(p50Ms, 2), decimal(p99Ms, 2)]

export const fanOutTable = ({ alone, lines }: NonNullable<LiveMeasurements['fanOut']>): LiveTable => ({
  title: 'Fan-out',
  columns: [
    'what',
    'changes/s',
    'deliveries/s',
    'p50 ms',
    'p99 ms',
    'CPU µs per change',
    'per delivery',
    'own',
    'core',
    'clients',
    'ratio',
    'CPU ratio',
  ],
  lines: [
    ['Writes without subscribers', ...rateCells(alone), '', ...shares(alone), '', ''],
    ...lines.flatMap(({ subscribers, server, baseline, ratio, cpuRatio, ownCpuUs }): Cells[] => [
      [`To ${whole(subscribers)}`, ...rateCells(server), micro(ownCpuUs), ...shares(server), '', ''],
      [
        "↳ the runtime's publish, nothing written",
        ...rateCells(baseline),
        '',
        ...shares(baseline),
        percent(ratio),
        percent(cpuRatio),
      ],
    ]),
  ],
})

const rateCells = (figures: LiveFigures): Cells => {
  const isTold = figures.deliveriesPerSecond > 0
  return [
    whole(figures.changesPerSecond),
    isTold ? whole(figures.deliveriesPerSecond) : '',
    ...times(isTold ? figures.told : figures.answers),
    micro(figures.changeCpuUs),
    micro(figures.deliveryCpuUs),
  ]
}

const pacedCells = (figures: LiveFigures): Cells => [
  ...times(figures.answers),
  ...times(figures.told),
  ...times(figures.behind),
  ...shares(figures),
]

const pacedColumns = [
  'write p50 ms',
  'p99',
  'told p50 ms',
  'p99',
  'after the answer p50 ms',
  'p99',
  'core',
  'clients',
] as const

export const latencyTable = (latency: readonly Latency[]): LiveTable => ({
  title: 'From commit to delivery',
  columns: ['what', ...pacedColumns],
  lines: latency.map(({ subscribers, perSecond, figures }) => [
    `${whole(perSecond)} writes/s to ${whole(subscribers)}`,
    ...pacedCells(figures),
  ]),
})

export const slowTable = ({ subscribers, perSecond, without, beside }: Slow): LiveTable => ({
  title: 'A reader that does not read',
  columns: ['what', ...pacedColumns],
  lines: [
    [`${whole(perSecond)} writes/s to ${whole(subscribers)} that read`, ...pacedCells(without)],
    ['the same beside one that does not', ...pacedCells(beside)],
  ],
})

export const rulesTable = (rules: readonly Ruled[]): LiveTable => ({
  title: 'Under row rules',
  columns: [
    'what',
    'changes/s',
    'deliveries/s',
    'p50 ms',
    'p99 ms',
    'CPU µs per delivery',
    'core',
    'clients',
    'budget',
  ],
  lines: rules.map(({ title, subscribers, users, figures }) => {
    const { changesPerSecond, deliveriesPerSecond, told, deliveryCpuUs } = figures
    return [
      `${whole(subscribers)} sockets of ${users} users, ${title}`,
      whole(changesPerSecond),
      whole(deliveriesPerSecond),
      ...times(told),
      micro(deliveryCpuUs),
      ...shares(figures),
      `≥ ${whole(ruledBudget)}/s ${deliveriesPerSecond >= ruledBudget ? '✓' : '✗'}`,
    ]
  }),
})

export const idleTable = ({ sockets, openSeconds, bytesPerSocket, share, figures }: Idle): LiveTable => ({
  title: 'Idle sockets',
  columns: ['process', 'measured'],
  lines: [
    [`Opening ${whole(sockets)}, four at a time`, `${openSeconds.toFixed(1)} s`],
    ['Resident memory per socket', bytesPerSocket === null ? '' : `${(bytesPerSocket / 1024).toFixed(1)} KB`],
    ['Share of a core, nothing happening but pings', share === null ? '' : `${(share * 100).toFixed(1)} %`],
    ['One change to all of them, p50 of its deliveries', `${figures.told.p50Ms.toFixed(1)} ms`],
    ['p99 of its deliveries', `${figures.told.p99Ms.toFixed(1)} ms`],
  ],
})

const matchingTitles: Record<Matching['kind'], string> = {
  equality: 'each watches one author',
  rule: 'each sees what is published and its own',
  order: 'each compares by order: none can be looked up',
}

export const matchingTable = (matching: readonly Matching[]): LiveTable => ({
  title: 'Whom a change concerns',
  columns: ['distinct subscriptions', 'CPU µs per change', 'to add one', 'bytes each'],
  lines: matching.map(({ kind, subscriptions, changeCpuUs, addCpuUs, bytesPerView }) => [
    `${whole(subscriptions)}, ${matchingTitles[kind]}`,
    micro(changeCpuUs),
    micro(addCpuUs),
    whole(bytesPerView),
  ]),
})

/** Aligned lines for a terminal. */
export function toText({ title, columns, lines }: LiveTable): string {
  const rows = [columns, ...lines]
  const widths = columns.map((_, at) => Math.max(...rows.map((cells) => cells[at]?.length ?? 0)))
  const aligned = (cells: Cells): string =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  ')
  return [`\n${title}`, ...rows.map(aligned)].join('\n')
}

/** Everything a run found out, as Markdown. */
export function toMarkdown(environment: Environment, plan: Plan, measured: LiveMeasurements): string {
  const { fanOut, latency, slow, rules, idle, matching } = measured
  const tables = [
    fanOut && fanOutTable(fanOut),
    latency && latencyTable(latency),
    slow && slowTable(slow),
    rules && rulesTable(rules),
    idle && idleTable(idle),
    matching && matchingTable(matching),
  ]
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    fanOut && busyNote(fanOut.lines),
    ...tables.map((table) => table && `### ${table.title}\n\n${markdownTable(table.columns, table.lines)}`),
  ]
    .filter((section) => section !== null)
    .join('\n\n')
}

/** Of the baseline and its clients at full load at least one has no time left on a unlogged machine. */
const idleShareMin = 0.9

/** A sentence when the machine had other work during the run; null when it had not, or when nobody can say. */
export function busyNote(lines: readonly FanOut[]): string | null {
  const largest = lines.at(-1)?.baseline
  if (!largest || largest.serverShare === null) return null
  const share = Math.max(largest.serverShare, largest.loadShare)
  if (share >= idleShareMin) return null
  return `The machine had other work during this run: of the runtime's publish at full load neither side got more than ${percent(share)} of its core. Trust the CPU ratios more than the throughput.`
}
