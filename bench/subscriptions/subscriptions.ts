/**
 * Runs the subscription bench and prints each part when it is done. Starts its own servers and stops them afterwards.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readEnvironment } from '../setup/environment.ts'
import { measureFanOut, measureIdle, measureLatency, measureMatching, measureRules, measureSlow } from './measure.ts'
import type { LivePart, LivePlan } from './plan.ts'
import {
  busyNote,
  fanOutTable,
  idleTable,
  type LiveTable,
  latencyTable,
  matchingTable,
  rulesTable,
  slowTable,
  toMarkdown,
  toText,
} from './report.ts'

/** Runs and prints the parts; returns the figures as Markdown. */
export async function runLive(plan: LivePlan): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-bench-'))

  async function part<T>(name: LivePart, measure: () => Promise<T>, tableOf: (found: T) => LiveTable) {
    if (!plan.parts.includes(name)) return null
    const found = await measure()
    console.log(toText(tableOf(found)))
    return found
  }

  try {
    const measured = {
      fanOut: await part('fan-out', () => measureFanOut(folder, plan), fanOutTable),
      latency: await part('latency', () => measureLatency(folder, plan), latencyTable),
      slow: await part('slow', () => measureSlow(folder, plan), slowTable),
      rules: await part('rules', () => measureRules(folder, plan), rulesTable),
      idle: await part('idle', () => measureIdle(folder, plan), idleTable),
      matching: await part('matching', () => measureMatching(plan), matchingTable),
    }
    const note = measured.fanOut && busyNote(measured.fanOut.lines)
    if (note !== null) console.log(`\n${note}`)
    return toMarkdown(readEnvironment(folder), { rounds: plan.rounds, ...plan.round }, measured)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
