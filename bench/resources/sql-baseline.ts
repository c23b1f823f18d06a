/**
 * The baseline of SQL databases, as a process: the engine's bare driver, its statements prepared once, without HTTP,
 * limits or another process. Prints its port when it listens.
 *
 * Usage: sql-baseline.ts <folder for a SQLite file, or postgres:// URL>
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import pg from 'pg'
import { type LoopResult, runSteps, warmupSeconds } from '../baseline-loops.ts'
import { type StatementName, seedStatements, statements, valuesAt } from './sql-statements.ts'

type Run = (name: StatementName, seconds: number) => Promise<LoopResult>

/** As durable as the server: a commit is on disk when its statement ends. */
function openSqlite(folder: string): Run {
  const database = new Database(join(folder, 'baseline.sqlite'))
  database.run('PRAGMA journal_mode = WAL')
  database.run('PRAGMA synchronous = FULL')
  for (const text of seedStatements('INTEGER')) database.run(text)
  return async (name, seconds) => {
    const statement = database.prepare(statements[name])
    return runSteps((index) => {
      JSON.stringify(statement.all(...valuesAt(name, index)))
      return 1
    }, seconds)
  }
}

/** The number of connections that the server uses for one database. */
const connections = 4

async function openPostgres(url: string): Promise<Run> {
  const pool = new pg.Pool({ connectionString: url, max: connections })
  await pool.query('CREATE SCHEMA baseline')
  await pool.query(`ALTER ROLE CURRENT_USER SET search_path = baseline`)
  await pool.end()
  const used = new pg.Pool({ connectionString: url, max: connections })
  for (const text of seedStatements('SERIAL')) await used.query(text)
  return async (name, seconds) => {
    let index = 0
    let parameters = 0
    const text = statements[name].replaceAll('?', () => `$${++parameters}`)
    const lanes = async (forSeconds: number): Promise<number> => {
      const until = performance.now() + forSeconds * 1000
      const counts = Array.from({ length: connections }, async () => {
        let done = 0
        for (; performance.now() < until; done++) {
          const { rows } = await used.query({ name, text, values: valuesAt(name, index++) })
          JSON.stringify(rows)
        }
        return done
      })
      return (await Promise.all(counts)).reduce((sum, done) => sum + done, 0)
    }
    await lanes(warmupSeconds)
    const startedAt = performance.now()
    const cpu = process.cpuUsage()
    const done = await lanes(seconds)
    const { user, system } = process.cpuUsage(cpu)
    return { done, seconds: (performance.now() - startedAt) / 1000, cpuSeconds: (user + system) / 1e6 }
  }
}

async function serve(where: string): Promise<number> {
  const run = where.startsWith('postgres') ? await openPostgres(where) : openSqlite(where)
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    routes: {
      '/loop/:name': async (request) => {
        const seconds = Number(new URL(request.url).searchParams.get('seconds'))
        return Response.json(await run(request.params.name as StatementName, seconds))
      },
    },
  })
  return server.port as number
}

if (import.meta.main) {
  const [where] = process.argv.slice(2)
  if (where === undefined) throw new Error('Usage: sql-baseline.ts <folder or postgres:// URL>')
  console.log(await serve(where))
}
