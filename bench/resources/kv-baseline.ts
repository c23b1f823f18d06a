/**
 * The baseline of key-value stores, as a process: the same statements on a copy of the server's own data file. A
 * handler that only parses the body and reads, and a loop that writes in groups. Prints its port when it listens.
 *
 * Usage: kv-baseline.ts <data folder that has keys>
 */
import { Database } from 'bun:sqlite'
import { fdatasyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { groupSize, runSteps, type Step } from '../baseline-loops.ts'
import { keyAt, kvNamespace, valueAt } from './kv-requests.ts'

function createSetting(path: string): Step {
  const db = new Database(path, { readwrite: true })
  db.run('PRAGMA journal_mode = WAL')
  db.run('PRAGMA synchronous = NORMAL')
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const set = db.prepare(`INSERT INTO entries AS stored (namespace, key, written_at, expires_at, value)
    VALUES (?, ?, ?, NULL, ?) ON CONFLICT (namespace, key) DO UPDATE
    SET written_at = excluded.written_at, expires_at = excluded.expires_at, value = excluded.value
    WHERE abs(excluded.written_at - stored.written_at) >= 0`)
  const write = (index: number): void => {
    begin.run()
    for (let at = index * groupSize; at < (index + 1) * groupSize; at++)
      set.run(kvNamespace, keyAt(at), Date.now(), JSON.stringify(valueAt(at)))
    commit.run()
  }
  // The log exists only after a first write.
  write(0)
  const logDescriptor = openSync(`${path}-wal`, 'r')
  return (index) => {
    write(index)
    fdatasyncSync(logDescriptor)
    return groupSize
  }
}

function serve(folder: string): number {
  const path = join(folder, 'databases', '_kv.sqlite')
  const set = createSetting(path)
  const reading = new Database(path, { readonly: true })
  const get = reading.prepare(
    'SELECT value FROM entries WHERE namespace = ? AND key = ? AND value IS NOT NULL AND (expires_at IS NULL OR expires_at > ?)',
  )
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/api/kv/:namespace': async (request) => {
        const { key } = (await request.json()) as { key: string }
        const [row] = get.all(request.params.namespace, key, Date.now()) as { value: string }[]
        return new Response(`{"value":${row?.value ?? 'null'}}`, { headers: { 'Content-Type': 'application/json' } })
      },
      '/loop/set': (request) => Response.json(runSteps(set, Number(new URL(request.url).searchParams.get('seconds')))),
    },
    fetch: () => new Response('Not found', { status: 404 }),
  })
  return server.port as number
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) throw new Error('Usage: kv-baseline.ts <data folder>')
  console.log(serve(folder))
}
