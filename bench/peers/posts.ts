/** The work of Plinth and its peers: the same posts, read and written by one signed-in user under the same rule. */
import type { Expectation, LoadRequest } from '../load/load-requests.ts'
import { clients } from '../scenarios.ts'
import { authorAt, authorCount, hash, newRowAt, rowAt } from '../setup/data.ts'
import type { BaselineProcess } from '../setup/processes.ts'

export const person = { email: 'user@bench.example', password: 'a long password of one user' } as const

/** The author whose posts belong to the signed-in user. */
export const ownAuthor = authorAt(0)

export const pageSize = 30

export interface Post {
  readonly title: string
  readonly body: string
  readonly views: number
  readonly published: boolean
  /** `authorAt(number)`; each server maps it to an id of its own. */
  readonly author: string
}

export interface StoredPost extends Post {
  readonly id: string
  readonly createdAt: string
}

/** Post `number` of `rows`: three in four are public, and each author has a hundred. */
export function postAt(number: number, rows: number): StoredPost {
  const { tags: _, authorId, ...post } = rowAt(number, rows)
  return { ...post, author: authorId }
}

/** A post that the signed-in user inserts. */
function newPostAt(number: number): Post {
  const { tags: _, authorId: __, ...post } = newRowAt(number)
  return { ...post, author: ownAuthor }
}

/** The requests of one server; all paths begin with a slash. */
export interface Dialect {
  /** Complete header lines of the signed-in user. */
  readonly headers: string
  readonly point: (number: number) => string
  /** Public posts of an author, latest first. */
  readonly list: (author: string, withTotal: boolean) => string
  readonly insert: (post: Post) => { readonly path: string; readonly body: object; readonly expect: Expectation }
  /** A change of the views of one of the user's own posts. */
  readonly update: (number: number, views: number) => { readonly path: string; readonly expect: Expectation }
  readonly signIn: { readonly path: string; readonly body: object }
}

/** A running server with its posts. */
export interface Peer extends BaselineProcess {
  readonly title: string
  readonly dialect: Dialect
  /** Of its folder with the seeded posts. */
  readonly bytes: number
}

export interface Work {
  readonly title: string
  readonly connections: number
  readonly requests: (dialect: Dialect, rows: number) => LoadRequest[]
}

/** Enough different requests to touch every part of the table. */
const variety = 20_000
const signIns = 8

function send(method: string, path: string, headers: string, expect: Expectation, body?: object): LoadRequest {
  const text = body === undefined ? '' : JSON.stringify(body)
  const content =
    body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`
  return { text: `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}${content}\r\n${text}`, expect }
}

const many = (request: (index: number) => LoadRequest): LoadRequest[] =>
  Array.from({ length: variety }, (_, index) => request(index))

function publicPost(index: number, rows: number): number {
  let number = hash(index) % rows
  while (!postAt(number, rows).published) number = (number + 1) % rows
  return number
}

const listed = (withTotal: boolean) => (dialect: Dialect, rows: number) =>
  many((index) =>
    send('GET', dialect.list(authorAt(hash(index) % authorCount(rows)), withTotal), dialect.headers, { status: 200 }),
  )

export const works: readonly Work[] = [
  {
    title: 'Point read',
    connections: clients,
    requests: (dialect, rows) =>
      many((index) => {
        const number = publicPost(index, rows)
        const { title } = postAt(number, rows)
        return send('GET', dialect.point(number), dialect.headers, { status: 200, includes: title })
      }),
  },
  { title: `List of ${pageSize}`, connections: clients, requests: listed(false) },
  { title: `List of ${pageSize} with total`, connections: clients, requests: listed(true) },
  {
    title: 'Update of one field',
    connections: clients,
    requests: (dialect, rows) =>
      many((index) => {
        // The posts of the first author are those whose number is a multiple of the number of authors.
        const number = (hash(index) % (rows / authorCount(rows))) * authorCount(rows)
        const views = hash(index + 1) % 100_000
        const { path, expect } = dialect.update(number, views)
        return send('PATCH', path, dialect.headers, expect, { views })
      }),
  },
  {
    title: 'Insert',
    connections: clients,
    requests: (dialect) =>
      many((index) => {
        const { path, body, expect } = dialect.insert(newPostAt(index))
        return send('POST', path, dialect.headers, expect, body)
      }),
  },
  {
    title: `Sign-in with a password, ${signIns} in flight`,
    connections: signIns,
    requests: ({ signIn: { path, body } }) => [send('POST', path, '', { status: 200 }, body)],
  },
]
