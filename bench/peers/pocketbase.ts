/** PocketBase with the posts, which are inserted by SQL into its file. */
import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { folderBytes } from '../setup/folders.ts'
import { type CreateCollection, openPocketBase } from '../setup/pocketbase.ts'
import { type Dialect, ownAuthor, type Peer, pageSize, person, postAt } from './posts.ts'

const records = '/api/collections/posts/records'
/** Ids have 15 characters. */
const userId = 'user00000000000'
const idAt = (number: number): string => `post${String(number).padStart(11, '0')}`
const authorId = (author: string): string => (author === ownAuthor ? userId : author)

async function createCollections(create: CreateCollection): Promise<void> {
  await create({
    name: 'posts',
    listRule: 'published = true || author = @request.auth.id',
    viewRule: 'published = true || author = @request.auth.id',
    createRule: '@request.auth.id != "" && author = @request.auth.id',
    updateRule: '@request.auth.id != "" && author = @request.auth.id',
    fields: [
      { name: 'title', type: 'text', required: true, max: 200 },
      { name: 'body', type: 'text' },
      { name: 'views', type: 'number' },
      { name: 'published', type: 'bool' },
      { name: 'author', type: 'text', required: true },
      { name: 'created', type: 'autodate', onCreate: true },
      { name: 'updated', type: 'autodate', onCreate: true, onUpdate: true },
    ],
    indexes: ['CREATE INDEX idx_posts_author ON posts (author, created)'],
  })
}

function insertPosts(folder: string, rows: number): void {
  const database = new Database(join(folder, 'data/data.db'))
  const insert = database.prepare(
    `INSERT INTO posts (id, title, body, views, published, author, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  database.transaction(() => {
    for (let number = 0; number < rows; number++) {
      const { title, body, views, published, author, createdAt } = postAt(number, rows)
      const at = createdAt.replace('T', ' ')
      insert.run(idAt(number), title, body, views, published, authorId(author), at, at)
    }
  })()
  database.run('ANALYZE')
  database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

async function requestJson<T>(port: number, path: string, body: object): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

export async function openPocketBasePeer(program: string, folder: string, rows: number): Promise<Peer> {
  mkdirSync(folder, { recursive: true })
  let bytes = 0
  const server = await openPocketBase({
    program,
    folder,
    create: createCollections,
    fill: () => {
      insertPosts(folder, rows)
      bytes = folderBytes(folder)
    },
  })
  await requestJson(server.port, '/api/collections/users/records', {
    id: userId,
    ...person,
    passwordConfirm: person.password,
  })
  const signIn = {
    path: '/api/collections/users/auth-with-password',
    body: { identity: person.email, password: person.password },
  }
  const { token } = await requestJson<{ token: string }>(server.port, signIn.path, signIn.body)
  return { ...server, title: 'PocketBase', bytes, dialect: dialectOf(token, signIn) }
}

const dialectOf = (token: string, signIn: Dialect['signIn']): Dialect => ({
  headers: `Authorization: ${token}\r\n`,
  point: (number) => `${records}/${idAt(number)}`,
  list: (author, withTotal) => {
    const filter = encodeURIComponent(`author='${authorId(author)}' && published=true`)
    return `${records}?filter=${filter}&sort=-created&perPage=${pageSize}${withTotal ? '' : '&skipTotal=1'}`
  },
  insert: (post) => ({
    path: records,
    body: { ...post, author: authorId(post.author) },
    expect: { status: 200, includes: post.title },
  }),
  update: (number, views) => ({
    path: `${records}/${idAt(number)}`,
    expect: { status: 200, includes: `"views":${views}` },
  }),
  signIn,
})
