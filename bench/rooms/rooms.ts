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
  const show = (table: LiveTable): void => console.log(toText(table))
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
    const alikeRooms = Math.max(1, Math.min(...capacities.map((capacity) => capacity.rooms)))
    const alike = await measureAlike(folder, alikeRooms, plan)
    show(alikeTable(alikeRooms, alike))
    const many = await each(measureMany)
    show(manyTable(plan.many.rooms, plan.many.players, many))
    // The interval of saves makes no difference to idle rooms.
    const saving = competitors.filter(({ namespace }) => namespace !== 'unsaved')
    const idle = await each(measureIdle, saving)
    show(idleTable(idle))
    const hibernated = await measureHibernated(folder, plan)
    show(hibernatedTable(hibernated))
    const note = busyNote(capacities)
    if (note !== null) console.log(`\n${note}`)
    return toMarkdown(readEnvironment(folder), plan, { capacities, alikeRooms, alike, many, idle, hibernated })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
