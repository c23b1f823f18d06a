/** Tables of the rooms benchmark. */
import { expect, test } from 'bun:test'
import type { Capacity, PlayFigures } from './measure.ts'
import { busyNote, capacityTable } from './report.ts'
import { competitors } from './setup.ts'

const figures: PlayFigures = {
  actionsPerSecond: 4000,
  p50Ms: 1,
  p99Ms: 12.345,
  deltasPerSecond: 20,
  deltaBytesPerSecond: 2048,
  actionCpuUs: 50,
  serverShare: 0.2,
  loadShare: 0.1,
  unanswered: 0,
}

const line = (at: number, rooms: number, limitShare: number | null): Capacity => ({
  competitor: competitors[at] ?? competitors[0],
  rooms,
  isAtLeast: limitShare === null,
  limitShare,
  figures,
})

test('the capacity of each competitor is compared with the first one', () => {
  const { lines } = capacityTable([line(0, 8, 0.9), line(5, 4, 0.9), line(6, 32, null)])
  expect(lines.map((cells) => [cells[0], cells[1], cells.at(-1)])).toEqual([
    ['Plinth', '8', ''],
    ['Colyseus', '4', '200%'],
    ['Socket.IO', '≥ 32', '25%'],
  ])
})

test('a note reports a machine that had other work during the run', () => {
  expect(busyNote([line(0, 8, 0.9), line(1, 8, null)])).toBeNull()
  expect(busyNote([line(0, 8, 0.9), line(1, 2, 0.3)])).toContain('only 30% of a core')
})
