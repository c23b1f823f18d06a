/** The run of functions (`--functions`): hooks before writes, reads while functions fail, and reloads of saved code. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '../../scripts/servers/postgres.ts'
import { providePocketBase, providePostgres, provideRedis } from '../../scripts/servers/programs.ts'
import { openRedis } from '../../scripts/servers/redis.ts'
import { readEnvironment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { type Shared, startLoad } from '../setup/processes.ts'
import { type HookFigures, measureHooks } from './before.ts'
import { measureFaults } from './faults.ts'
import { measureJobs } from './jobs.ts'
import { measureReload } from './reload.ts'
import { toMarkdown, toText } from './report.ts'

const reloads = 10

/** Opens a database of its own for each server; null where PostgreSQL or Redis is missing. */
function postgresOpener(stack: AsyncDisposableStack): (() => Promise<Shared>) | null {
  const [postgresPrograms, redisProgram] = [providePostgres(), provideRedis()]
  if (postgresPrograms === null || redisProgram === null) return null
  return async () => {
    const postgres = await openPostgres(postgresPrograms)
    stack.defer(() => postgres.remove())
    const redis = await openRedis(redisProgram)
    stack.defer(() => redis.remove())
    return { databaseUrl: postgres.url, redisUrl: redis.url }
  }
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runFunctions(plan: Plan, quick: boolean): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const load = startLoad()
  stack.defer(() => load.stop())
  const pocketbase = quick ? null : providePocketBase()
  if (pocketbase === null && !quick) console.log('PocketBase could not be built: it is not measured.')
  const hooks: HookFigures[] = []
  for (const cores of ['all', 'one'] as const) {
    const servers = { engine: 'SQLite', cores, open: async () => null, pocketbase }
    hooks.push(...(await measureHooks(servers, work, load, plan)))
  }
  const jobsSeconds = quick ? 2 : 5
  const jobs = [await measureJobs({ engine: 'SQLite', shared: null }, join(work, 'jobs'), jobsSeconds)]
  const open = quick ? null : postgresOpener(stack)
  if (open) {
    const servers = { engine: 'PostgreSQL', cores: 'all', open, pocketbase: null } as const
    hooks.push(...(await measureHooks(servers, work, load, plan)))
    const shared = await open()
    jobs.push(await measureJobs({ engine: 'PostgreSQL', shared }, join(work, 'jobs on PostgreSQL'), jobsSeconds))
  }
  const faults = await measureFaults(work, load, quick ? 2 : 5)
  const figures = { hooks, faults, jobs, reload: await measureReload(work, reloads) }
  console.log(`\n${toText(figures)}`)
  return toMarkdown(readEnvironment(work), plan, figures)
}
