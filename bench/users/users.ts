/** The users run (`--users`). Uses private processes and folders and removes them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { textHeader, toText } from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { OnProgress } from '../setup/seed.ts'
import { measureUsers } from './measure.ts'
import { busyNote, toMarkdown } from './report.ts'
import { openUsersSetup } from './setup.ts'

/** Runs, prints, and returns the figures as Markdown. */
export async function runUsers(plan: Plan, onProgress: OnProgress): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const setup = await openUsersSetup(stack, work, onProgress)
  console.log(`\n${textHeader}`)
  const measurements = await measureUsers(setup, plan, (measurement) => console.log(toText(measurement)))
  const note = busyNote(measurements)
  if (note !== null) console.log(`\n${note}`)
  return toMarkdown(readEnvironment(work), plan, measurements)
}
