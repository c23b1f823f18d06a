/**
 * The rooms benchmark (`--rooms`). Prints each table when it is complete; processes and folders are removed at the end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readEnvironment } from '../setup/environment.ts'
import { type LiveTable, toText } from '../subscriptions/report.ts'
import { measureAlike, measureCapacity, measureHibernated, measureIdle, measureMany } from './measure.ts'
import type { RoomsPlan } from './plan.ts'
import { alikeTable, busyNote, capacityTable, hibernatedTable, idleTable, manyTable, toMarkdown } from './report.ts'
import { type Competitor, competitors } from './setup.ts'

/** Runs and prints the benchmark; returns the figures as Markdown. */
export async function runRooms(plan: RoomsPlan): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  const tables: LiveTable[] = []
  const show = (table: LiveTable): void => {
    console.log(toText(table))
    tables.push(table)
  }
  async function each<T>(
    measure: (folder: string, competitor: Competitor, plan: RoomsPlan) => Promise<T>,
    some: readonly Competitor[] = competitors,
  ): Promise<T[]> {
    const lines: T[] = []
    for (const competitor of some) lines.push(await measure(folder, competitor, plan))
    return lines
  }

  try {
    const capacities = await each(measureCapacity)
    show(capacityTable(capacities))
    const rooms = Math.max(1, Math.min(...capacities.map((capacity) => capacity.rooms)))
    show(alikeTable(rooms, await measureAlike(folder, rooms, plan)))
    show(manyTable(plan.many.rooms, plan.many.players, await each(measureMany)))
    // The interval of saves makes no difference to idle rooms.
    show(
      idleTable(
        await each(
          measureIdle,
          competitors.filter(({ namespace }) => namespace !== 'unsaved'),
        ),
      ),
    )
    show(hibernatedTable(await measureHibernated(folder, plan)))
    const note = busyNote(capacities)
    if (note !== null) console.log(`\n${note}`)
    return toMarkdown(readEnvironment(folder), plan, note, tables)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
