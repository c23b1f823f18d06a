/** Figures of the rooms bench as tables: on the terminal, and as their part of `docs/benchmarks.md`. */

import { type Cells, decimal, markdownTable, measuredWith, megabytes, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { LiveTable } from '../subscriptions/report.ts'
import type { Alike, Capacity, Hibernated, IdleMemory, Many, PlayFigures } from './measure.ts'
import type { RoomsPlan } from './plan.ts'

const rounded = (value: number): string => Math.round(value).toLocaleString('en-US')
const kilobytes = (bytes: number | null): string => (bytes === null ? '' : `${(bytes / 1024).toFixed(1)} KB`)

const playColumns = [
  'actions/s',
  'p50 ms',
  'p99 ms',
  'CPU µs per action',
  'deltas/s to each',
  'KB/s to each',
  'core',
  'clients',
] as const

const playCells = (figures: PlayFigures): Cells => [
  rounded(figures.actionsPerSecond),
  decimal(figures.p50Ms, 2),
  decimal(figures.p99Ms, 2),
  decimal(figures.actionCpuUs, 1),
  decimal(figures.deltasPerSecond, 1),
  decimal(figures.deltaBytesPerSecond / 1024, 1),
  percent(figures.serverShare),
  percent(figures.loadShare),
]

/** The first competitor's figure relative to another's; empty for the first. */
const ratioOf = (at: number, ours: number, theirs: number): string =>
  at === 0 || theirs === 0 ? '' : percent(ours / theirs)

export const capacityTable = (lines: readonly Capacity[]): LiveTable => ({
  title: 'Full rooms on one core',
  columns: ['what', 'rooms', ...playColumns, 'ratio'],
  lines: lines.map(({ competitor, rooms, isAtLeast, figures }, at) => [
    competitor.title,
    `${isAtLeast ? '≥ ' : ''}${rooms}`,
    ...playCells(figures),
    ratioOf(at, lines[0]?.rooms ?? 0, rooms),
  ]),
})

export const alikeTable = (rooms: number, lines: readonly Alike[]): LiveTable => ({
  title: `The same ${rooms === 1 ? 'full room' : `${rooms} full rooms`} on each`,
  columns: ['what', ...playColumns, 'CPU ratio'],
  lines: lines.map(({ competitor, figures, cpuRatio }) => [competitor.title, ...playCells(figures), percent(cpuRatio)]),
})

export const manyTable = (rooms: number, players: number, lines: readonly Many[]): LiveTable => ({
  title: `${rooms} rooms of ${players}`,
  columns: ['what', 'each acts', 'carried', ...playColumns, 'ratio'],
  lines: lines.map(({ competitor, rate, isCarried, figures }, at) => [
    competitor.title,
    `${rate}/s`,
    isCarried ? '✓' : '✗',
    ...playCells(figures),
    ratioOf(at, lines[0]?.figures.actionsPerSecond ?? 0, figures.actionsPerSecond),
  ]),
})

export const idleTable = (lines: readonly IdleMemory[]): LiveTable => ({
  title: 'Memory of idle rooms and players',
  columns: ['what', 'with one full room', 'a player of a full room', 'a room of one player'],
  lines: lines.map(({ competitor, startBytes, bytesPerPlayer, bytesPerRoom }) => [
    competitor.title,
    startBytes === null ? '' : `${megabytes(startBytes)} MB`,
    kilobytes(bytesPerPlayer),
    kilobytes(bytesPerRoom),
  ]),
})

export const hibernatedTable = (found: Hibernated): LiveTable => ({
  title: 'Hibernated rooms',
  columns: ['what', 'measured'],
  lines: [
    [`${rounded(found.rooms)} rooms made, entered and left, four at a time`, `${rounded(found.visitsPerSecond)}/s`],
    ['From the connection to the state of a new room, p50', `${found.first.p50Ms.toFixed(2)} ms`],
    ['p99', `${found.first.p99Ms.toFixed(2)} ms`],
    ['From the connection to the state of a hibernated room, p50', `${found.revived.p50Ms.toFixed(2)} ms`],
    ['p99', `${found.revived.p99Ms.toFixed(2)} ms`],
    ['Resident memory that a hibernated room leaves', kilobytes(found.bytesPerRoom)],
    ['On disk', kilobytes(found.diskBytesPerRoom)],
  ],
})

/** A server that is too slow on an otherwise idle machine uses at least this share of its core. */
const idleShareMin = 0.8

/** A note if the machine had other work during the run; null if not, or if that is unknown. */
export function busyNote(lines: readonly Capacity[]): string | null {
  const shares = lines.flatMap(({ limitShare }) => limitShare ?? [])
  const least = Math.min(...shares)
  if (least >= idleShareMin) return null
  return `The machine had other work during this run: one competitor was too slow with only ${percent(least)} of a core. The CPU per action is more reliable than the number of rooms.`
}

/** The results of a run; lines of the same competitor have the same position. */
export interface RoomsMeasurements {
  readonly capacities: readonly Capacity[]
  /** Full rooms that each competitor had in `alike`. */
  readonly alikeRooms: number
  readonly alike: readonly Alike[]
  readonly many: readonly Many[]
  /** Without the competitors that differ under load only. */
  readonly idle: readonly IdleMemory[]
  readonly hibernated: Hibernated
}

const inKilobytes = (bytes: number | null | undefined): string => decimal(bytes == null ? null : bytes / 1024, 1)

/** The page has a line per competitor with what each load showed of it. */
function pageTable({ capacities, alike, many, idle }: RoomsMeasurements, manyTitle: string): string {
  const lines = capacities.map(({ competitor, rooms, isAtLeast, figures }, at): Cells => {
    const memory = idle.find((one) => one.competitor === competitor)
    return [
      competitor.title,
      `${isAtLeast ? '≥ ' : ''}${rooms}`,
      decimal(alike[at]?.figures.actionCpuUs ?? null, 1),
      percent(alike[at]?.cpuRatio ?? null),
      inKilobytes(figures.deltaBytesPerSecond),
      many[at] ? rounded(many[at].figures.actionsPerSecond) : '',
      inKilobytes(memory?.bytesPerPlayer),
      inKilobytes(memory?.bytesPerRoom),
    ]
  })
  const head = ['full rooms', 'CPU µs per action', 'CPU ratio', 'KB/s to each', manyTitle, 'KB a player', 'KB a room']
  return markdownTable(['what', ...head], lines)
}

function hibernatedText({ rooms, first, revived, bytesPerRoom, diskBytesPerRoom }: Hibernated): string {
  const times = ({ p50Ms, p99Ms }: Hibernated['first']): string => `${p50Ms.toFixed(1)} ms (p99 ${p99Ms.toFixed(1)})`
  const memory = bytesPerRoom === null ? '' : `${kilobytes(bytesPerRoom)} of memory and `
  return `A player has the state of a new room after ${times(first)}, and that of one of ${rounded(rooms)} hibernated rooms after ${times(revived)}. A hibernated room takes ${memory}${kilobytes(diskBytesPerRoom)} of disk.`
}

/** All figures of a run as Markdown. */
export const toMarkdown = (environment: Environment, plan: RoomsPlan, measured: RoomsMeasurements): string => {
  const note = busyNote(measured.capacities)
  const { rooms, players } = plan.many
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    ...(note === null ? [] : [note]),
    `The CPU per action is that of ${measured.alikeRooms} full rooms on each.`,
    pageTable(measured, `actions/s in ${rooms} rooms of ${players}`),
    hibernatedText(measured.hibernated),
  ].join('\n\n')
}
