/** The analytics run (`--analytics`). Uses private processes and folders and removes them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '../../scripts/servers/postgres.ts'
import { providePostgres } from '../../scripts/servers/programs.ts'
import { postgresSettings } from '../postgres/postgres-setup.ts'
import { type Reported, textHeader, toText } from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import { copyFolder } from '../setup/folders.ts'
import type { Plan } from '../setup/measure.ts'
import { startLoad, startServer } from '../setup/processes.ts'
import { type OnProgress, seedFolder } from '../setup/seed.ts'
import { measureReports, measureRequestLog, measureTracking } from './measure.ts'
import { type ReportedEngine, toMarkdown, toText as toReportText } from './report.ts'
import { type AnalyticsLocation, openStore, seedAnalytics } from './seed.ts'

const tableRows = 10_000
const rounds = 10

/** Runs, prints, and returns the figures as Markdown. */
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
    const unlogged = await startServer(
      await copyFolder(tables, join(work, 'unlogged')),
      null,
      'bench/analytics/unlogged/plinth.config.ts',
    )
    pair.defer(() => unlogged.stop())
    const server = await startServer(tables)
    pair.defer(() => server.stop())
    const read = await measureRequestLog({ server, unlogged, load }, plan, tableRows)
    add({ scenario: { title: 'Point read, counted by the request log' }, ...read })
    for (const [size, title] of [
      [1, 'Events, one per request'],
      [100, 'Events, a hundred per request'],
    ] as const)
      add({ scenario: { title }, ...(await measureTracking(server, load, plan, size)) })
  }

  const events = quick ? 200_000 : 10_000_000
  const reported: ReportedEngine[] = []
  const addReports = async (engine: string, location: AnalyticsLocation): Promise<void> => {
    await using own = new AsyncDisposableStack()
    await seedAnalytics(location, events, onProgress)
    const store = await openStore(location, true)
    own.defer(() => store.close())
    const dataBytes = await store.diskBytes()
    const { folder, databaseUrl } = location
    const server = await startServer(folder, databaseUrl === null ? null : { databaseUrl, redisUrl: '' })
    own.defer(() => server.stop())
    const found = { engine, dataBytes, ...(await measureReports(server, store, rounds)) }
    reported.push(found)
    console.log(`\n${toReportText(found)}`)
  }
  await addReports('SQLite', { folder: join(work, 'events'), databaseUrl: null })
  rmSync(join(work, 'events'), { recursive: true })
  const programs = providePostgres()
  if (programs === null) console.log('\nPostgreSQL IS NOT INSTALLED. Its reports are skipped.')
  else {
    const postgres = await openPostgres(programs, postgresSettings)
    stack.defer(() => postgres.remove())
    await addReports('PostgreSQL', { folder: join(work, 'node'), databaseUrl: postgres.url })
  }
  return toMarkdown(readEnvironment(work), plan, { events, reported, measurements })
}
