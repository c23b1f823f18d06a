/**
 * The scenarios: requests, expected responses, and baselines. The requests of a scenario and of its baselines name the
 * same rows in the same order.
 */

import type { LoopName } from './baseline-loops.ts'
import type { Expectation, LoadRequest } from './load/load-requests.ts'
import {
  authorAt,
  authorCount,
  draftRows,
  hash,
  idAt,
  isPublished,
  newRowAt,
  publishedPerAuthor,
  rowsPerTopic,
  topicAt,
  topicCount,
} from './setup/data.ts'

export interface Baseline {
  readonly title: string
  /** Minimum share of the baseline's throughput; null without a budget. */
  readonly budget: number | null
  readonly run:
    | { readonly kind: 'http'; readonly requests: (size: Size) => LoadRequest[] }
    | { readonly kind: 'loop'; readonly loop: LoopName }
}

export interface Size {
  readonly rows: number
  /** Access token of the author of row 0. */
  readonly token: string
}

export interface Scenario {
  readonly name: string
  readonly title: string
  /** Runs on a fresh copy of the seeded folder, and the row count is checked afterwards. */
  readonly writes: boolean
  readonly connections: number
  /** Units per request: a batch of 500 is 500 rows. */
  readonly unitsPerRequest: number
  /** Number of requests of a fixed job; null for a timed one. */
  readonly total: number | null
  readonly requests: (size: Size) => LoadRequest[]
  /** The first one is the reference of the ratio column. */
  readonly baselines: readonly Baseline[]
}

const tables = '/api/db/shared/tables'
/** Different reads per scenario: enough to touch every part of the table and to exceed small caches. */
const readsVariety = 50_000
/** Different bodies of inserts; each request creates a new row. */
const insertsVariety = 5000
export const pageSize = 30
export const clients = 64
export const batchRows = 500
/** Enough to keep a batch waiting while another is committed. */
const batchClients = 4
/** Requests of the fixed job. */
const jobInserts = 100_000

function get(path: string, expect: Expectation, headers = ''): LoadRequest {
  return { text: `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`, expect }
}

export const post = (path: string, body: unknown, expect: Expectation): LoadRequest => send('POST', path, body, expect)

function send(method: string, path: string, body: unknown, expect: Expectation): LoadRequest {
  const text = JSON.stringify(body)
  const head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`
  return { text: head + text, expect }
}

/** Reads, or updates, of different rows. */
const reads = (rows: number, request: (index: number) => LoadRequest): LoadRequest[] =>
  many(Math.min(rows, readsVariety), request)

const many = (count: number, request: (index: number) => LoadRequest): LoadRequest[] =>
  Array.from({ length: count }, (_, index) => request(index))

const rowOf = (index: number, rows: number): number => hash(index) % rows
const authorOf = (index: number, rows: number): string => authorAt(hash(index) % authorCount(rows))
const topicOf = (index: number, rows: number): string => topicAt(hash(index) % topicCount(rows))

const listQuery = (index: number, rows: number, more: readonly unknown[] = []): string => {
  const filter = [['authorId', '==', authorOf(index, rows)], ['published', '==', true], ...more]
  return `filter=${encodeURIComponent(JSON.stringify(filter))}&sort=createdAt:desc`
}

/** `headersAt` returns complete header lines. */
export const pointReads = (table: string, rows: number, headersAt = (_turn: number): string => ''): LoadRequest[] =>
  reads(rows, (index) => {
    const id = idAt(rowOf(index, rows))
    return get(`${tables}/${table}/${id}`, { status: 200, includes: `"${id}"` }, headersAt(index))
  })

/** Reads of public rows only, so that the same requests serve both callers. */
const draftReads = (rows: number, headers = ''): LoadRequest[] =>
  reads(rows, (index) => {
    const count = draftRows(rows)
    let number = rowOf(index, count)
    while (!isPublished(number, count)) number = (number + 1) % count
    const id = idAt(number)
    return get(`${tables}/drafts/${id}`, { status: 200, includes: `"${id}"` }, headers)
  })

const inserts = (path: string): LoadRequest[] =>
  many(insertsVariety, (index) => {
    const row = newRowAt(index)
    return post(path, row, { status: 201, includes: row.title })
  })

const updates = (rows: number): LoadRequest[] =>
  reads(rows, (index) => {
    const id = idAt(rowOf(index, rows))
    const views = hash(index + 1) % 100_000
    return send('PATCH', `${tables}/notes/${id}`, { views }, { status: 200, includes: `"views":${views}` })
  })

/** Replaces one read in ten with a write, evenly mixed. */
const mixed = (readsOnly: LoadRequest[], writes: LoadRequest[]): LoadRequest[] =>
  readsOnly.map((read, index) => (hash(index) % 10 === 0 ? (writes[index % writes.length] ?? read) : read))

export const bareHandler: Baseline = {
  title: 'bare handler',
  budget: 0.6,
  run: { kind: 'http', requests: () => [get('/bare', { status: 200 })] },
}

const sameSqlOverHttp = (budget: number | null, path: (index: number, rows: number) => string): Baseline => ({
  title: 'minimal handler',
  budget,
  run: {
    kind: 'http',
    requests: ({ rows }) => reads(rows, (index) => get(path(index, rows), { status: 200 })),
  },
})

const loop = (title: string, name: LoopName, budget: number | null = null): Baseline => ({
  title,
  budget,
  run: { kind: 'loop', loop: name },
})

const minimalGet = sameSqlOverHttp(null, (index, rows) => `/get/posts/${idAt(rowOf(index, rows))}`)
const insertBaselines: readonly Baseline[] = [
  loop('loop, 64 rows per commit', 'insert-logged', 0.5),
  loop('the loop without change log', 'insert-plain'),
  {
    title: 'minimal handler with group commit',
    budget: null,
    run: { kind: 'http', requests: () => inserts('/insert') },
  },
]

const reading = { writes: false, connections: clients, unitsPerRequest: 1, total: null } as const
const writing = { ...reading, writes: true } as const

/** A list of rows as the other lists have, whose total no earlier request has asked for. */
export const countedList: Scenario = {
  ...reading,
  name: 'counted',
  title: 'Filtered list of 30, total counted',
  requests: ({ rows }) =>
    many(readsVariety, (index) =>
      get(`${tables}/posts?${listQuery(index, rows, [['views', '>', -1 - index]])}&page=1&perPage=${pageSize}`, {
        status: 200,
        items: pageSize,
        total: publishedPerAuthor,
      }),
    ),
  baselines: [],
}

export const scenarios: readonly Scenario[] = [
  {
    ...reading,
    name: 'point',
    title: 'Point read',
    requests: ({ rows }) => pointReads('posts', rows),
    baselines: [bareHandler, minimalGet],
  },
  {
    ...reading,
    name: 'point-rule',
    title: 'Point read under a rule, anonymous',
    requests: ({ rows }) => draftReads(rows),
    baselines: [bareHandler],
  },
  {
    ...reading,
    name: 'point-user',
    title: 'Point read under a rule, signed-in user',
    requests: ({ rows, token }) => draftReads(rows, `Authorization: Bearer ${token}\r\n`),
    baselines: [bareHandler],
  },
  {
    ...reading,
    name: 'list',
    title: 'Filtered list of 30, cursor mode',
    requests: ({ rows }) =>
      reads(rows, (index) =>
        get(`${tables}/posts?${listQuery(index, rows)}&limit=${pageSize}&after=`, { status: 200, items: pageSize }),
      ),
    baselines: [
      sameSqlOverHttp(0.6, (index, rows) => `/list/${authorOf(index, rows)}`),
      loop('same SQL and JSON.stringify in a loop', 'list'),
    ],
  },
  {
    ...reading,
    name: 'total',
    title: 'Filtered list of 30 with total',
    requests: ({ rows }) =>
      reads(rows, (index) =>
        get(`${tables}/posts?${listQuery(index, rows)}&page=1&perPage=${pageSize}`, {
          status: 200,
          items: pageSize,
          total: publishedPerAuthor,
        }),
      ),
    baselines: [
      sameSqlOverHttp(0.6, (index, rows) => `/total/${authorOf(index, rows)}`),
      loop('same SQL and JSON.stringify in a loop', 'total'),
    ],
  },
  {
    ...reading,
    name: 'all',
    title: 'First 30 of the whole table with total',
    requests: ({ rows }) => [
      get(`${tables}/posts?page=1&perPage=${pageSize}`, { status: 200, items: pageSize, total: rows }),
    ],
    baselines: [sameSqlOverHttp(null, () => '/all')],
  },
  {
    ...reading,
    name: 'search',
    title: 'Search, 20 of 50 with total',
    requests: ({ rows }) =>
      reads(rows, (index) =>
        get(`${tables}/posts/search?q=${topicOf(index, rows)}&limit=20`, {
          status: 200,
          items: 20,
          total: rowsPerTopic,
        }),
      ),
    baselines: [
      sameSqlOverHttp(null, (index, rows) => `/search/${topicOf(index, rows)}`),
      loop('same SQL and JSON.stringify in a loop', 'search'),
    ],
  },
  {
    ...writing,
    name: 'insert',
    title: 'Insert, 64 in flight',
    requests: () => inserts(`${tables}/notes`),
    baselines: insertBaselines,
  },
  {
    ...writing,
    name: 'job',
    title: '100,000 inserts, 64 in flight',
    total: jobInserts,
    requests: () => inserts(`${tables}/notes`),
    baselines: insertBaselines.slice(0, 1),
  },
  {
    ...writing,
    name: 'insert-searched',
    title: 'Insert into a searched table, 64 in flight',
    requests: () => inserts(`${tables}/posts`),
    baselines: [loop('loop, 64 rows per commit', 'insert-searched', 0.5)],
  },
  {
    ...writing,
    name: 'update',
    title: 'Update of one field, 64 in flight',
    requests: ({ rows }) => updates(rows),
    baselines: [loop('loop, 64 rows per commit', 'update-logged')],
  },
  {
    ...writing,
    name: 'batch',
    title: 'Batch insert of 500, rows',
    connections: batchClients,
    unitsPerRequest: batchRows,
    requests: () =>
      many(40, (index) => {
        const rows = Array.from({ length: batchRows }, (_, row) => newRowAt(index * batchRows + row))
        return post(
          `${tables}/notes/batch`,
          { inserts: rows },
          { status: 200, includes: rows[batchRows - 1]?.title ?? '' },
        )
      }),
    baselines: [loop('loop, 500 rows per commit', 'batch-logged'), loop('the loop without change log', 'batch-plain')],
  },
  {
    ...writing,
    name: 'mixed',
    title: 'Mixed: 90 % point reads, 10 % inserts',
    requests: ({ rows }) => mixed(pointReads('notes', rows), inserts(`${tables}/notes`)),
    baselines: [
      {
        title: 'minimal handler, group commit',
        budget: null,
        run: {
          kind: 'http',
          requests: ({ rows }) =>
            mixed(
              reads(rows, (index) => get(`/get/notes/${idAt(rowOf(index, rows))}`, { status: 200 })),
              inserts('/insert'),
            ),
        },
      },
    ],
  },
]
