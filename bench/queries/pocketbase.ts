/** PocketBase with the rows of posts: collections by its API, rows by SQL into its file while it is stopped. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { findFreePort, runToEnd, type ServerProcess, startProcess } from '../../scripts/servers/private-server.ts'
import { pinned, serverCore } from '../setup/proc.ts'
import type { BaselineProcess } from '../setup/processes.ts'
import { type Counts, rowsOf } from './data.ts'

const account = { identity: 'bench@example.com', password: 'bench-password-of-a-temporary-server' }

const start = async (program: string, folder: string, port: number): Promise<ServerProcess> =>
  startProcess({
    command: [...pinned(serverCore), program, 'serve', `--dir=${folder}`, `--http=127.0.0.1:${port}`],
    ready: 'Server started',
  })

async function request<T>(url: string, body: unknown, token = ''): Promise<T> {
  const headers = { 'Content-Type': 'application/json', Authorization: token }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as T
}

async function createCollections(url: string): Promise<void> {
  const { token } = await request<{ token: string }>(`${url}/api/collections/_superusers/auth-with-password`, account)
  const create = async (name: string, fields: readonly object[], indexes: readonly string[] = []): Promise<string> => {
    const collection = { name, type: 'base', listRule: '', viewRule: '', fields, indexes }
    return (await request<{ id: string }>(`${url}/api/collections`, collection, token)).id
  }
  const text = (name: string): object => ({ name, type: 'text' })
  const number = (name: string): object => ({ name, type: 'number' })
  const relation = (name: string, collectionId: string): object => ({
    name,
    type: 'relation',
    collectionId,
    maxSelect: 1,
  })
  const authors = await create('authors', [text('name'), text('bio')])
  const posts = await create(
    'posts',
    [text('title'), text('body'), text('topic'), number('rank'), relation('authorId', authors)],
    ['CREATE INDEX idx_posts_topic ON posts (topic, rank)'],
  )
  await create(
    'comments',
    [text('text'), number('rank'), relation('postId', posts)],
    ['CREATE INDEX idx_comments_post ON comments (postId, rank)'],
  )
}

function insertRows(folder: string, counts: Counts): void {
  const database = new Database(join(folder, 'data.db'))
  const { orders: _, ...tables } = rowsOf(counts)
  for (const [table, { count, at }] of Object.entries(tables)) {
    const names = Object.keys(at(0))
    const insert = database.prepare(
      `INSERT INTO ${table} (${names.map((name) => `"${name}"`)}) VALUES (${names.map(() => '?')})`,
    )
    database.transaction(() => {
      for (let row = 0; row < count; row++) insert.run(...Object.values(at(row)))
    })()
  }
  database.run('ANALYZE')
  database.close()
}

/** Starts PocketBase on a folder with the rows of the run. */
export async function openPocketBase(program: string, folder: string, counts: Counts): Promise<BaselineProcess> {
  runToEnd([program, 'superuser', 'upsert', account.identity, account.password, `--dir=${folder}`], null)
  const port = findFreePort()
  const empty = await start(program, folder, port)
  await createCollections(`http://127.0.0.1:${port}`)
  await empty.end('SIGTERM')
  insertRows(folder, counts)
  const server = await start(program, folder, port)
  return { pid: server.pid, port, stop: () => server.end('SIGTERM') }
}
