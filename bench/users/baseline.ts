/**
 * The baseline of what users do, as a process: the password hash alone, and the row of a session written durably, with
 * and without the signatures that a refresh takes. No HTTP but to start a loop, no checks. Prints its port when it
 * listens.
 *
 * Usage: users-baseline.ts <data folder that has sessions>
 */
import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { fdatasyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../packages/server/src/base/crypto/hash.ts'
import { hashesAtOnce, hashPassword, verifyPassword } from '../../packages/server/src/base/crypto/password-hash.ts'
import { passwordCost, refreshTokenLifetimeMs } from '../../packages/server/src/limits/users.ts'
import { groupSize, type LoopResult, runSteps, type Step, warmupSeconds } from '../baseline-loops.ts'
import { openDatabase } from '../baseline-store.ts'
import { Histogram } from '../load/histogram.ts'
import { hash } from '../setup/data.ts'

export type UsersLoopName = 'hash' | 'refresh' | 'refresh-signed'

/** Verifies a correct password, with the server's concurrency. */
async function runHashes(seconds: number): Promise<LoopResult> {
  const password = 'a password that is right'
  const known = await hashPassword(password, passwordCost)
  const latencies = new Histogram()
  const lane = async (untilMs: number): Promise<void> => {
    while (performance.now() < untilMs) {
      const startedAt = performance.now()
      await verifyPassword(password, known)
      latencies.add(performance.now() - startedAt)
    }
  }
  const runLanes = (forSeconds: number): Promise<unknown> => {
    const untilMs = performance.now() + forSeconds * 1000
    return Promise.all(Array.from({ length: hashesAtOnce }, () => lane(untilMs)))
  }
  await runLanes(warmupSeconds)
  latencies.reset()
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  await runLanes(seconds)
  const elapsedMs = performance.now() - startedAt
  const used = process.cpuUsage(cpu)
  return {
    done: latencies.total,
    seconds: elapsedMs / 1000,
    cpuSeconds: (used.user + used.system) / 1e6,
    latencies: latencies.toSparse(),
  }
}

/** Typical length of a token: header, ids, times and an address. */
const tokenContentBytes = 350

/** The signature operations of a refresh: one verified, two created, on content of a token's length. */
function createSigning(): () => void {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const content = Buffer.alloc(tokenContentBytes, 'c')
  const signature = sign(null, content, privateKey)
  return () => {
    verify(null, content, publicKey, signature)
    sign(null, content, privateKey)
    sign(null, content, privateKey)
  }
}

/** Advances groups of sessions by one generation, with one transaction and one sync that the loop waits for. */
function createRefreshing(folder: string, beforeEach: () => void): Step {
  const path = join(folder, 'databases', 'shared.sqlite')
  const db = openDatabase(path, false)
  const walDescriptor = openSync(`${path}-wal`, 'r')
  const ids = (db.query('SELECT id FROM _sessions').all() as { id: string }[]).map(({ id }) => id)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const advance = db.prepare(`UPDATE _sessions SET generation = generation + 1, refresh_hash = ?,
    previous_hash = refresh_hash, rotated_at = ?, used_at = ?, expires_at = ? WHERE id = ?`)
  return (index) => {
    begin.run()
    for (let at = index * groupSize; at < (index + 1) * groupSize; at++) {
      beforeEach()
      const nowMs = Date.now()
      const id = ids[hash(at) % ids.length] as string
      advance.run(sha256(`${id}${at}`), nowMs, nowMs, nowMs + refreshTokenLifetimeMs, id)
    }
    commit.run()
    fdatasyncSync(walDescriptor)
    return groupSize
  }
}

function serve(folder: string): number {
  const refresh = createRefreshing(folder, () => {})
  const refreshSigned = createRefreshing(folder, createSigning())
  const loops: Record<UsersLoopName, (seconds: number) => LoopResult | Promise<LoopResult>> = {
    hash: runHashes,
    refresh: (seconds) => runSteps(refresh, seconds),
    'refresh-signed': (seconds) => runSteps(refreshSigned, seconds),
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/loop/:name': async (request) => {
        const loop = loops[request.params.name as UsersLoopName]
        if (loop === undefined) return new Response(`No loop ${request.params.name}`, { status: 404 })
        return Response.json(await loop(Number(new URL(request.url).searchParams.get('seconds'))))
      },
    },
    fetch: () => new Response('Not found', { status: 404 }),
  })
  return server.port as number
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) throw new Error('Usage: users-baseline.ts <data folder>')
  console.log(serve(folder))
}
