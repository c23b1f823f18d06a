/** Plinth with the posts, which are inserted by its batch endpoint. */
import { folderBytes } from '../setup/folders.ts'
import { type ServerProcess, startServer } from '../setup/processes.ts'
import { insertBatch } from '../setup/seed.ts'
import { type Dialect, ownAuthor, type Peer, pageSize, person, postAt } from './posts.ts'

const config = 'bench/peers/plinth.config.ts'
const table = '/api/db/shared/tables/posts'
const batchRows = 500

interface Session {
  readonly accessToken: string
  readonly user: { readonly id: string }
}

async function signUp(server: ServerProcess): Promise<Session> {
  const response = await fetch(`${server.url}/api/auth/signup`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(person),
  })
  if (response.status !== 201) throw new Error(`Sign-up failed: ${response.status} ${await response.text()}`)
  return (await response.json()) as Session
}

export async function openPlinth(folder: string, rows: number): Promise<Peer> {
  const seeding = await startServer(folder, null, config)
  const { accessToken, user } = await signUp(seeding)
  const idOf = (author: string): string => (author === ownAuthor ? user.id : author)
  for (let first = 0; first < rows; first += batchRows) {
    const posts = Array.from({ length: Math.min(batchRows, rows - first) }, (_, at) => {
      const { id, title, body, views, published, author } = postAt(first + at, rows)
      // Times are the server's, as for posts that clients insert.
      return { id, title, body, views, published, author: idOf(author) }
    })
    await insertBatch(seeding.url, 'posts', posts)
  }
  await seeding.stop()
  const bytes = folderBytes(folder)
  const { pid, port, stop } = await startServer(folder, null, config)
  return { title: 'Plinth', pid, port, stop, bytes, dialect: dialectOf(accessToken, rows, idOf) }
}

function dialectOf(token: string, rows: number, idOf: (author: string) => string): Dialect {
  const path = (number: number): string => `${table}/${postAt(number, rows).id}`
  return {
    headers: `Authorization: Bearer ${token}\r\n`,
    point: path,
    list: (author, withTotal) => {
      const filter = [
        ['author', '==', idOf(author)],
        ['published', '==', true],
      ]
      const paging = withTotal ? `page=1&perPage=${pageSize}` : `limit=${pageSize}&after=`
      return `${table}?filter=${encodeURIComponent(JSON.stringify(filter))}&sort=createdAt:desc&${paging}`
    },
    insert: (post) => ({
      path: table,
      body: { ...post, author: idOf(post.author) },
      expect: { status: 201, includes: post.title },
    }),
    update: (number, views) => ({ path: path(number), expect: { status: 200, includes: `"views":${views}` } }),
    signIn: { path: '/api/auth/signin', body: person },
  }
}
