/** The storage run (`--storage`). Uses private processes and folders and removes them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { textHeader, toText } from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { amounts, measureStorage } from './measure.ts'
import { toMarkdown } from './report.ts'
import { openStorageSetup } from './setup.ts'

/** Runs, prints, and returns the figures as Markdown. */
export async function runStorage(plan: Plan, quick: boolean): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const [loadBefore = 0] = loadavg()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const setup = await openStorageSetup(stack, work, quick)
  console.log(`\n${textHeader}`)
  const amount = amounts[quick ? 'quick' : 'full']
  const measurements = await measureStorage(setup, plan, amount, (measurement) => console.log(toText(measurement)))
  const [loadAfter = 0] = loadavg()
  const circumstances = { nginxVersion: setup.nginx?.version ?? null, loadBefore, loadAfter }
  return toMarkdown(readEnvironment(work), plan, circumstances, measurements)
}
