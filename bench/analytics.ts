/** The run about analytics: `--analytics`. Prints as it goes; private processes and folders, gone when it ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measureReports, measureRequestLog, measureTracking } from './analytics-measure.ts'
import { toMarkdown, toText as toReportText } from './analytics-report.ts'
import { seedAnalytics } from './analytics-seed.ts'
import { readEnvironment } from './environment.ts'
import { copyFolder, folderBytes } from './folders.ts'
import type { Plan } from './measure.ts'
import { startLoad, startServer } from './processes.ts'
import { type Reported, textHeader, toText } from './report.ts'
import { type OnProgress, seedFolder } from './seed.ts'

const tableRows = 10_000
const rounds = 10

/** Runs and prints; gives the figures as Markdown. */
export async function runAnalytics(plan: Plan, quick: boolean, onProgress: OnProgress): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const load = startLoad()
  stack.defer(() => load.stop())
  const measurements: Reported[] = []
  const add = (measurement: Reported): void => {
    measurements.push(measurement)
    console.log(toText(measurement))
  }

  const tables = join(work, 'tables')
  await seedFolder(tables, tableRows, onProgress)
  console.log(`\n${textHeader}`)
  {
    await using pair = new AsyncDisposableStack()
    const quiet = await startServer(await copyFolder(tables, join(work, 'quiet')), null, 'bench/quiet/plinth.config.ts')
    pair.defer(() => quiet.stop())
    const server = await startServer(tables)
    pair.defer(() => server.stop())
    const read = await measureRequestLog({ server, quiet, load }, plan, tableRows)
    add({ scenario: { title: 'Point read, counted by the request log' }, ...read })
    for (const [size, title] of [
      [1, 'Events, one a request'],
      [100, 'Events, a hundred a request'],
    ] as const)
      add({ scenario: { title }, ...(await measureTracking(server, load, plan, size)) })
  }

  const events = quick ? 200_000 : 10_000_000
  const folder = join(work, 'events')
  await seedAnalytics(folder, events, onProgress)
  const dataBytes = folderBytes(folder)
  const server = await startServer(folder)
  stack.defer(() => server.stop())
  const { times, rollUpSeconds } = await measureReports(server, folder, rounds)
  console.log(`\n${toReportText(times)}`)
  return toMarkdown(readEnvironment(work), plan, { events, dataBytes, times, rollUpSeconds, measurements })
}
