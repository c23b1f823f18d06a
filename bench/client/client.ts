/** The client run (`--client`). Uses private processes and folders and removes them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { readEnvironment } from '../setup/environment.ts'
import { measureCalls, measureLive } from './measure.ts'
import type { ClientPlan } from './plan.ts'
import { type ClientMeasurement, toMarkdown, toText } from './report.ts'
import { openClientSetup } from './setup.ts'

const loadOfMinute = (): number => loadavg()[0] ?? 0

/** Runs, prints, and returns the figures as Markdown. */
export async function runClient(plan: ClientPlan): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const before = loadOfMinute()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const setup = await openClientSetup(stack, work)
  const measurements: ClientMeasurement[] = []
  const onMeasured = (measurement: ClientMeasurement): void => {
    console.log(toText(measurement))
    measurements.push(measurement)
  }
  await measureCalls(setup, plan, onMeasured)
  await measureLive(setup, plan, onMeasured)
  return toMarkdown(readEnvironment(work), plan, { before, after: loadOfMinute() }, measurements)
}
