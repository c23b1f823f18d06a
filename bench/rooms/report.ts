/** Figures of the rooms bench as tables: on the terminal, and as their part of `docs/benchmarks.md`. */

import { type Cells, decimal, measuredWith, megabytes, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { type LiveTable, pageSection } from '../subscriptions/report.ts'
import type { Alike, Capacity, Hibernated, IdleMemory, Many, PlayFigures } from './measure.ts'

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
  hidden: ['actions/s'],
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
  hidden: ['actions/s', 'KB/s to each'],
  lines: lines.map(({ competitor, figures, cpuRatio }) => [competitor.title, ...playCells(figures), percent(cpuRatio)]),
})

export const manyTable = (rooms: number, players: number, lines: readonly Many[]): LiveTable => ({
  title: `${rooms} rooms of ${players}`,
  columns: ['what', 'each acts', 'carried', ...playColumns, 'ratio'],
  hidden: ['KB/s to each'],
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

/** All figures of a run as Markdown. */
export const toMarkdown = (
  environment: Environment,
  plan: Plan,
  note: string | null,
  tables: readonly LiveTable[],
): string =>
  [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    ...(note === null ? [] : [note]),
    ...tables.map(pageSection),
  ].join('\n\n')
