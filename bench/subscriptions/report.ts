/** Figures of the subscription bench as tables, for the terminal and for `docs/benchmarks.md`. */

import { type Cells, decimal, integer, measuredWith, percent, withoutColumns } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { FanOut, Idle, Latency, LiveFigures, Matching, Percentiles, Ruled, Slow } from './measure.ts'

/** Results of a run; null for parts that were not requested. */
export interface LiveMeasurements {
  readonly fanOut: { readonly alone: LiveFigures; readonly lines: readonly FanOut[] } | null
  readonly latency: readonly Latency[] | null
  readonly slow: Slow | null
  readonly rules: readonly Ruled[] | null
  readonly idle: Idle | null
  readonly matching: readonly Matching[] | null
}

/** A heading, the columns and the rows. */
export interface LiveTable {
  readonly title: string
  readonly columns: Cells
  readonly lines: readonly Cells[]
}

/** Columns that only the terminal has. */
const hiddenColumns: ReadonlySet<string> = new Set([
  'p50 ms',
  'write p50 ms',
  'after the response p50 ms',
  'after the response p99 ms',
  'to add one',
  'core',
  'clients',
])

/** A table with its heading, for the page. */
const pageSection = ({ title, columns, lines }: LiveTable): string =>
  `### ${title}\n\n${withoutColumns(columns, lines, hiddenColumns)}`

/** Ten times the highest published figure of a comparable server: 4,000 changes per second on 2 cores, with rules. */
const ruledBudget = 40_000

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
    'CPU µs per delivery',
    'own',
    'core',
    'clients',
    'ratio',
    'CPU ratio',
  ],
  lines: [
    ['Writes without subscribers', ...rateCells(alone), '', ...shares(alone), '', ''],
    ...lines.flatMap(({ subscribers, server, baseline, ratio, cpuRatio, ownCpuUs }): Cells[] => [
      [`To ${integer(subscribers)}`, ...rateCells(server), micro(ownCpuUs), ...shares(server), '', ''],
      [
        `↳ the runtime's publish to ${integer(subscribers)}`,
        ...rateCells(baseline),
        '',
        ...shares(baseline),
        percent(ratio),
        percent(cpuRatio),
      ],
    ]),
  ],
})

/** The page has a line per number of subscribers, with the ratios to the baseline. */
const fanOutPageTable = ({ lines }: NonNullable<LiveMeasurements['fanOut']>): LiveTable => ({
  title: 'Fan-out',
  columns: ['subscribers', 'changes/s', 'deliveries/s', 'p99 ms', 'CPU µs per delivery', 'ratio', 'CPU ratio'],
  lines: lines.map(({ subscribers, server, ratio, cpuRatio }) => [
    integer(subscribers),
    integer(server.changesPerSecond),
    integer(server.deliveriesPerSecond),
    decimal(server.deliveries.p99Ms, 2),
    micro(server.deliveryCpuUs),
    percent(ratio),
    percent(cpuRatio),
  ]),
})

const rateCells = (figures: LiveFigures): Cells => {
  const isDelivered = figures.deliveriesPerSecond > 0
  return [
    integer(figures.changesPerSecond),
    isDelivered ? integer(figures.deliveriesPerSecond) : '',
    ...times(isDelivered ? figures.deliveries : figures.responses),
    micro(figures.changeCpuUs),
    micro(figures.deliveryCpuUs),
  ]
}

const pacedCells = (figures: LiveFigures): Cells => [
  ...times(figures.responses),
  ...times(figures.deliveries),
  ...times(figures.lag),
  ...shares(figures),
]

const pacedColumns = [
  'write p50 ms',
  'write p99 ms',
  'delivery p50 ms',
  'delivery p99 ms',
  'after the response p50 ms',
  'after the response p99 ms',
  'core',
  'clients',
] as const

export const latencyTable = (latency: readonly Latency[]): LiveTable => ({
  title: 'From commit to delivery',
  columns: ['what', ...pacedColumns],
  lines: latency.map(({ subscribers, perSecond, figures }) => [
    `${integer(perSecond)} writes/s to ${integer(subscribers)}`,
    ...pacedCells(figures),
  ]),
})

export const slowTable = ({ subscribers, perSecond, without, beside }: Slow): LiveTable => ({
  title: 'A slow reader',
  columns: ['what', ...pacedColumns],
  lines: [
    [`${integer(perSecond)} writes/s to ${integer(subscribers)} readers`, ...pacedCells(without)],
    ['the same beside a stalled reader', ...pacedCells(beside)],
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
    const { changesPerSecond, deliveriesPerSecond, deliveries, deliveryCpuUs } = figures
    return [
      `${integer(subscribers)} sockets of ${users} users, ${title}`,
      integer(changesPerSecond),
      integer(deliveriesPerSecond),
      ...times(deliveries),
      micro(deliveryCpuUs),
      ...shares(figures),
      `≥ ${integer(ruledBudget)}/s ${deliveriesPerSecond >= ruledBudget ? '✓' : '✗'}`,
    ]
  }),
})

export const idleTable = ({ sockets, openSeconds, bytesPerSocket, share, figures }: Idle): LiveTable => ({
  title: 'Idle sockets',
  columns: ['process', 'measured'],
  lines: [
    [`Opening ${integer(sockets)}, four at a time`, `${openSeconds.toFixed(1)} s`],
    ['Resident memory per socket', bytesPerSocket === null ? '' : `${(bytesPerSocket / 1024).toFixed(1)} KB`],
    ['Share of a core with only pings', share === null ? '' : `${(share * 100).toFixed(1)}%`],
    ['Delivery of one change to all sockets, p50', `${figures.deliveries.p50Ms.toFixed(1)} ms`],
    ['Delivery of one change to all sockets, p99', `${figures.deliveries.p99Ms.toFixed(1)} ms`],
  ],
})

/** The idle sockets as a sentence, for the page. */
function idleText({ sockets, openSeconds, bytesPerSocket, share, figures: { deliveries } }: Idle): string {
  const memory = bytesPerSocket === null ? '' : `, takes ${(bytesPerSocket / 1024).toFixed(1)} KB of memory for each`
  const pings = share === null ? '' : ` and ${(share * 100).toFixed(1)}% of a core for their pings`
  return `A server opens ${integer(sockets)} idle sockets in ${openSeconds.toFixed(1)} s${memory}${pings}, and delivers one change to all of them in ${deliveries.p50Ms.toFixed(1)} ms (p99 ${deliveries.p99Ms.toFixed(1)}).`
}

const matchingTitles: Record<Matching['kind'], string> = {
  equality: 'each filters by one author',
  rule: 'each matches published and own rows',
  order: 'each is a range: not indexed',
}

export const matchingTable = (matching: readonly Matching[]): LiveTable => ({
  title: 'Matching',
  columns: ['distinct subscriptions', 'CPU µs to match', 'to add one', 'bytes each'],
  lines: matching.map(({ kind, subscriptions, changeCpuUs, addCpuUs, bytesPerSubscription }) => [
    `${integer(subscriptions)}, ${matchingTitles[kind]}`,
    micro(changeCpuUs),
    micro(addCpuUs),
    integer(bytesPerSubscription),
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

/** Both paced parts in one table, for the page. */
function pacedTable(latency: readonly Latency[], slow: Slow | null): LiveTable {
  const table = latencyTable(latency)
  return { ...table, lines: [...table.lines, ...(slow ? slowTable(slow).lines : [])] }
}

/** The largest number of subscriptions of each kind. */
const largestOf = (matching: readonly Matching[]): Matching[] => [
  ...new Map(matching.map((one) => [one.kind, one])).values(),
]

/** The results of a run as Markdown. */
export function toMarkdown(environment: Environment, plan: Plan, measured: LiveMeasurements): string {
  const { fanOut, latency, slow, rules, idle, matching } = measured
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    fanOut && busyNote(fanOut.lines),
    fanOut && pageSection(fanOutPageTable(fanOut)),
    (latency || slow) && pageSection(pacedTable(latency ?? [], slow)),
    rules && pageSection(rulesTable(rules)),
    matching && pageSection(matchingTable(largestOf(matching))),
    idle && idleText(idle),
  ]
    .filter((section) => section !== null)
    .join('\n\n')
}

/** At full load, the baseline or its clients use at least this share of a core of an otherwise idle machine. */
const idleShareMin = 0.9

/** A note if the machine had other load during the run; null if not, or if it is unknown. */
export function busyNote(lines: readonly FanOut[]): string | null {
  const largest = lines.at(-1)?.baseline
  if (!largest || largest.serverShare === null) return null
  const share = Math.max(largest.serverShare, largest.loadShare)
  if (share >= idleShareMin) return null
  return `The machine had other load during this run: with the runtime's publish at full load, neither side got more than ${percent(share)} of its core. The CPU ratios are more reliable than the throughput.`
}
