/** TrailBase with the posts, which are inserted by SQL into its file. */
import { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort, type ServerProcess, startProcess } from '../../scripts/servers/private-server.ts'
import { folderBytes } from '../setup/folders.ts'
import { pinned, serverCore } from '../setup/proc.ts'
import { type Dialect, ownAuthor, type Peer, pageSize, person, postAt } from './posts.ts'

const records = '/api/records/v1/posts'

const schema = `CREATE TABLE posts (
  id BLOB PRIMARY KEY NOT NULL CHECK(is_uuid_v7(id)) DEFAULT (uuid_v7()),
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  views INTEGER NOT NULL DEFAULT 0,
  published INTEGER NOT NULL DEFAULT FALSE,
  author BLOB NOT NULL,
  created INTEGER NOT NULL DEFAULT (unixepoch()),
  updated INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;
CREATE INDEX posts_author ON posts (author, created);
CREATE TRIGGER posts_updated AFTER UPDATE ON posts FOR EACH ROW
  BEGIN UPDATE posts SET updated = unixepoch() WHERE id = OLD.id; END;
`

const config = `email {}
server { application_name: "bench" site_url: "http://127.0.0.1" }
auth { auth_token_ttl_sec: 86400 }
jobs {}
record_apis: [{
  name: "posts"
  table_name: "posts"
  acl_authenticated: [CREATE, READ, UPDATE]
  read_access_rule: "_ROW_.published OR _ROW_.author = _USER_.id"
  create_access_rule: "_REQ_.author = _USER_.id"
  update_access_rule: "_ROW_.author = _USER_.id"
}]
`

/** The argon2id parameters of TrailBase, which are ours too. */
const hashOptions = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

const bytesOf = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex')

/** A version 7 UUID that follows from the name. */
function authorId(author: string): Buffer {
  const id = createHash('sha256').update(author).digest().subarray(0, 16)
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x70, 6)
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8)
  return id
}

/** Ids in JSON and in queries, with padding. */
const encoded = (author: string): string =>
  authorId(author).toString('base64').replaceAll('+', '-').replaceAll('/', '_')

async function start(program: string, folder: string, port: number): Promise<ServerProcess> {
  const server = await startProcess({
    command: [...pinned(serverCore), program, folder, `127.0.0.1:${port}`],
    ready: 'Listening on',
  })
  const isHealthy = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/api/healthcheck`).then(
      (response) => response.ok,
      () => false,
    )
  for (let left = 100; left > 0; left--) {
    if (await isHealthy()) return server
    await Bun.sleep(50)
  }
  await server.end('SIGTERM')
  throw new Error('TrailBase did not answer within five seconds')
}

async function fill(folder: string, rows: number): Promise<void> {
  const hash = await Bun.password.hash(person.password, hashOptions)
  const database = new Database(join(folder, 'data/main.db'))
  // The functions of the checks exist in TrailBase only.
  database.run('PRAGMA ignore_check_constraints = ON')
  database
    .prepare('INSERT INTO _user (id, email, password_hash, verified) VALUES (?, ?, ?, 1)')
    .run(authorId(ownAuthor), person.email, hash)
  const insert = database.prepare(
    'INSERT INTO posts (id, title, body, views, published, author, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  )
  database.transaction(() => {
    for (let number = 0; number < rows; number++) {
      const { id, title, body, views, published, author, createdAt } = postAt(number, rows)
      const seconds = Date.parse(createdAt) / 1000
      insert.run(bytesOf(id), title, body, views, published, authorId(author), seconds, seconds)
    }
  })()
  database.run('ANALYZE')
  database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

async function signIn(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/api/auth/v1/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(person),
  })
  if (!response.ok) throw new Error(`Sign-in failed: ${response.status} ${await response.text()}`)
  const { auth_token: token } = (await response.json()) as { auth_token: string }
  return token
}

export async function openTrailBase(program: string, folder: string, rows: number): Promise<Peer> {
  mkdirSync(join(folder, 'migrations'), { recursive: true })
  writeFileSync(join(folder, 'migrations/U1000__posts.sql'), schema)
  writeFileSync(join(folder, 'config.textproto'), config)
  const port = findFreePort()
  const empty = await start(program, folder, port)
  await empty.end('SIGTERM')
  await fill(folder, rows)
  const bytes = folderBytes(folder)
  const server = await start(program, folder, port)
  const dialect = dialectOf(await signIn(port), rows)
  return { title: 'TrailBase', pid: server.pid, port, stop: () => server.end('SIGTERM'), bytes, dialect }
}

const dialectOf = (token: string, rows: number): Dialect => ({
  headers: `Authorization: Bearer ${token}\r\n`,
  point: (number) => `${records}/${postAt(number, rows).id}`,
  list: (author, withTotal) => {
    const filter = `filter[author]=${encodeURIComponent(encoded(author))}&filter[published]=1`
    return `${records}?${filter}&order=-created&limit=${pageSize}${withTotal ? '&count=true' : ''}`
  },
  insert: (post) => ({
    path: records,
    body: { ...post, published: 1, author: encoded(post.author) },
    expect: { status: 200, includes: 'ids' },
  }),
  // The response is empty.
  update: (number) => ({ path: `${records}/${postAt(number, rows).id}`, expect: { status: 200, bodyBytes: 0 } }),
  signIn: { path: '/api/auth/v1/login', body: person },
})
