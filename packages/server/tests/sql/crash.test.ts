/** SQL databases when the server, or a process that runs statements for it, is killed. */
import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { exec } from '../harness/resources/sql.ts'

const configText = 'export default { sql: { main: {}, other: {} } }'
const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'

/** The processes that run statements of this server. */
function processesOf(server: SpawnedServer): number[] {
  const { stdout } = Bun.spawnSync(['ps', '-eo', 'pid=,args='])
  return stdout
    .toString()
    .split('\n')
    .filter((line) => line.includes(server.dataFolder) && line.includes('sandbox/sqlite/child'))
    .map((line) => Number.parseInt(line, 10))
}

/** Kills the processes that run statements of this server; one of them may end before it is killed. */
function killProcesses(server: SpawnedServer): void {
  for (const pid of processesOf(server)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5)
}

async function withServer(engine: (typeof engines)[number], work: (server: SpawnedServer) => Promise<void>) {
  const server = await spawnServer(configText, engine)
  try {
    await work(server)
  } finally {
    await server.remove()
  }
}

for (const engine of engines)
  test(`[SQL-23] acknowledged writes are kept after kill -9 of the server, on ${engine.name}`, async () => {
    await withServer(engine, async (server) => {
      await exec(server, 'CREATE TABLE t (a INTEGER PRIMARY KEY)')
      const acknowledged: number[] = []
      let last = 0
      let killing: Promise<void> | null = null
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          while (!killing) {
            const n = ++last
            const answer = await exec(server, 'INSERT INTO t VALUES (?)', [n]).catch(() => null)
            if (answer?.status === 200) acknowledged.push(n)
            if (acknowledged.length >= 100) killing ??= server.kill()
          }
        }),
      )
      await killing
      await server.start()
      const { body } = await exec(server, 'SELECT a FROM t')
      const there = new Set(body.results.map(({ a }: { a: number }) => a))
      expect(acknowledged.filter((n) => !there.has(n))).toEqual([])
    })
  })

const [embedded] = engines
if (!embedded) throw new Error('no engine')

test('[SQL-24] kill -9 of the server ends its statement processes, also while they run a statement', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    await exec(server, 'SELECT 1')
    // One process is idle, one runs an endless write and one an endless read.
    const running = [
      exec(server, `INSERT INTO t ${endless} SELECT x FROM c`),
      exec(server, `${endless} SELECT count(*) FROM c`),
    ].map((answer) => answer.catch(() => null))
    await exec(server, 'SELECT 1')
    expect(processesOf(server).length).toBeGreaterThanOrEqual(3)
    await server.kill()
    await Promise.all(running)
    await until(() => processesOf(server).length === 0)
    await server.start()
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 0 }])
  })
})

test('[SQL-24] SIGTERM of the server ends its statement processes', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    await exec(server, 'SELECT 1')
    expect(processesOf(server)).toHaveLength(2)
    expect(await server.terminate()).toBe(0)
    await until(() => processesOf(server).length === 0)
  })
})

test('[SQL-23] killing a process during a write fails only that write', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    const [writer] = processesOf(server)
    const running = exec(server, `INSERT INTO t SELECT x FROM (${endless} SELECT x FROM c) AS c`)
    const next = exec(server, 'INSERT INTO t VALUES (7)')
    // Both requests have reached the server once a later one is answered.
    await exec(server, 'SELECT 1')
    process.kill(writer as number, 'SIGKILL')
    expect((await running).status).toBe(503)
    expect((await next).status).toBe(200)
    expect((await exec(server, 'SELECT a FROM t')).body.results).toEqual([{ a: 7 }])
  })
})

test('[SQL-17] the environment of the statement processes contains no secret', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'SELECT 1')
    const [pid] = processesOf(server)
    const environment = await Bun.file(`/proc/${pid}/environ`).text()
    expect(environment).not.toContain('PLINTH')
  })
})

test('[SQL-23] a damaged database file is 503, and other databases are still served', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    killProcesses(server)
    const file = join(server.dataFolder, 'sql/main.sqlite')
    for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
    writeFileSync(file, 'not a database at all. '.repeat(1000))
    expect((await exec(server, 'SELECT a FROM t')).status).toBe(503)
    expect((await server.service.post('/api/sql/other', { query: 'SELECT 1 AS a' })).status).toBe(200)
  })
})

test('[SQL-23] killing processes at any time fails only their statements', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    const statuses: number[] = []
    for (let round = 0; round < 15; round++) {
      const statements = Array.from({ length: 8 }, (_, at) =>
        exec(server, at % 2 === 0 ? 'SELECT count(*) AS n FROM t' : 'INSERT INTO t VALUES (1)'),
      )
      killProcesses(server)
      for (const { status } of await Promise.all(statements)) statuses.push(status)
    }
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
    // Each of the three readers may be dead, which the server detects only when it sends a statement to it.
    const next: number[] = []
    for (let round = 0; round < 4; round++) next.push((await exec(server, 'SELECT 1 AS a')).status)
    expect(next.at(-1)).toBe(200)
    expect((await server.anonymous.get('/api/health')).status).toBe(200)
    await until(() => processesOf(server).length <= 4)
  })
})
