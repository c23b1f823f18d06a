/** SQL databases through sudden ends: of the server, and of the processes that run statements for it. */
import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { exec } from '../harness/resources/sql.ts'
import { type SpawnedServer, spawnServer } from '../harness/spawn.ts'

const configText = 'export default { sql: { main: {}, other: {} } }'
const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'

/** The processes that run statements of this server. */
function processesOf(server: SpawnedServer): number[] {
  const { stdout } = Bun.spawnSync(['ps', '-eo', 'pid=,args='])
  return stdout
    .toString()
    .split('\n')
    .filter((line) => line.includes(server.dataFolder) && line.includes('sandbox/sqlite-child'))
    .map((line) => Number.parseInt(line, 10))
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
  test(`[SQL-23] what was acknowledged is there after kill -9 of the server, on ${engine.name}`, async () => {
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

test('[SQL-24] kill -9 of the server ends its processes, one in the middle of a statement too', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    await exec(server, 'SELECT 1')
    // One idle, one writing and one reading without an end.
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

test('[SQL-24] SIGTERM ends them too', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    await exec(server, 'SELECT 1')
    expect(processesOf(server)).toHaveLength(2)
    expect(await server.terminate()).toBe(0)
    await until(() => processesOf(server).length === 0)
  })
})

test('[SQL-23] a process that is killed in the middle of a write fails that write alone', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    const [writer] = processesOf(server)
    const running = exec(server, `INSERT INTO t SELECT x FROM (${endless} SELECT x FROM c) AS c`)
    const next = exec(server, 'INSERT INTO t VALUES (7)')
    // Both are in the server once a later request is answered.
    await exec(server, 'SELECT 1')
    process.kill(writer as number, 'SIGKILL')
    expect((await running).status).toBe(503)
    expect((await next).status).toBe(200)
    expect((await exec(server, 'SELECT a FROM t')).body.results).toEqual([{ a: 7 }])
  })
})

test('[SQL-17] the environment of these processes holds no secret', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'SELECT 1')
    const [pid] = processesOf(server)
    const environment = await Bun.file(`/proc/${pid}/environ`).text()
    expect(environment).not.toContain('PLINTH')
  })
})

test('[SQL-23] a file that is damaged is 503, and stops no other database', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    for (const pid of processesOf(server)) process.kill(pid, 'SIGKILL')
    const file = join(server.dataFolder, 'sql/main.sqlite')
    for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
    writeFileSync(file, 'not a database at all. '.repeat(1000))
    expect((await exec(server, 'SELECT a FROM t')).status).toBe(503)
    expect((await server.service.post('/api/sql/other', { query: 'SELECT 1 AS a' })).status).toBe(200)
  })
})

test('[SQL-23] processes that are killed at any moment cost no more than their own statement', async () => {
  await withServer(embedded, async (server) => {
    await exec(server, 'CREATE TABLE t (a INTEGER)')
    const statuses: number[] = []
    for (let turn = 0; turn < 15; turn++) {
      const asked = Array.from({ length: 8 }, (_, at) =>
        exec(server, at % 2 === 0 ? 'SELECT count(*) AS n FROM t' : 'INSERT INTO t VALUES (1)'),
      )
      for (const pid of processesOf(server)) process.kill(pid, 'SIGKILL')
      for (const { status } of await Promise.all(asked)) statuses.push(status)
    }
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
    // Each of the three that read may have been killed since it last answered, which the server learns by asking it.
    const next: number[] = []
    for (let turn = 0; turn < 4; turn++) next.push((await exec(server, 'SELECT 1 AS a')).status)
    expect(next.at(-1)).toBe(200)
    expect((await server.anonymous.get('/api/health')).status).toBe(200)
    await until(() => processesOf(server).length <= 4)
  })
})
