/** Seeds empty databases through the public batch endpoint. */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { draftRows, type Row, rowAt } from './data.ts'
import { serviceKey, startServer } from './processes.ts'

const batchRows = 500
/** Enough that the server always has a batch waiting. */
const batchesInFlight = 4

/** Called with the number of seeded rows and the total. */
export type OnProgress = (done: number, all: number) => void

/** Starts a server on the folder and seeds `rows` posts and notes, and the drafts. */
export async function seedFolder(folder: string, rows: number, onProgress: OnProgress): Promise<void> {
  const server = await startServer(folder)
  await seed([server.url], rows, onProgress)
  await server.stop()
}

/** The seeded folder of a size below `base`, created unless an earlier run has kept it. */
export async function seededFolder(
  base: string,
  rows: number,
  onProgress: OnProgress,
): Promise<{ folder: string; seconds: number }> {
  const folder = join(base, `seed-${rows}`)
  const record = join(base, `seed-${rows}.seconds`)
  if (statSync(record, { throwIfNoEntry: false })) return { folder, seconds: Number(readFileSync(record, 'utf8')) }
  rmSync(folder, { recursive: true, force: true })
  const startedAt = performance.now()
  await seedFolder(folder, rows, onProgress)
  const seconds = (performance.now() - startedAt) / 1000
  writeFileSync(record, String(seconds))
  return { folder, seconds }
}

/** Seeds a running server through all of its nodes. */
export async function seed(urls: readonly string[], rows: number, onProgress: OnProgress): Promise<void> {
  const jobs = [...batchesOf('posts', rows), ...batchesOf('notes', rows), ...batchesOf('drafts', draftRows(rows))]
  const all = seededRows(rows)
  let done = 0
  const work = async (url: string): Promise<void> => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
      await insertBatch(url, job.table, job.make())
      done += job.count
      onProgress(done, all)
    }
  }
  await Promise.all(Array.from({ length: batchesInFlight }, (_, at) => work(urls[at % urls.length] as string)))
}

/** Seeded rows of all tables. */
export const seededRows = (rows: number): number => 2 * rows + draftRows(rows)

interface Batch {
  readonly table: string
  readonly count: number
  readonly make: () => Row[]
}

function batchesOf(table: string, rows: number): Batch[] {
  return Array.from({ length: Math.ceil(rows / batchRows) }, (_, batch) => {
    const first = batch * batchRows
    const count = Math.min(batchRows, rows - first)
    return { table, count, make: () => Array.from({ length: count }, (_, row) => rowAt(first + row, rows)) }
  })
}

/** Throws unless the server has stored all rows. */
export async function insertBatch(url: string, table: string, inserts: readonly object[]): Promise<void> {
  const response = await fetch(`${url}/api/db/shared/tables/${table}/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Platform-Service-Key': serviceKey },
    body: JSON.stringify({ inserts }),
  })
  if (!response.ok) throw new Error(`Seeding ${table} failed: ${response.status} ${await response.text()}`)
  await response.arrayBuffer()
}
