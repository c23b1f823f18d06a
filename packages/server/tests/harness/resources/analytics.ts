/** Common requests of analytics tests, and access to internal rows. */
import { Database as Sqlite } from 'bun:sqlite'
import { join } from 'node:path'
import pg from 'pg'
import { type Answer, type Client, query } from '../client.ts'
import type { TestServer } from '../server.ts'

export interface SentEvent {
  readonly name: unknown
  readonly properties?: unknown
  readonly timestamp?: unknown
  readonly userId?: unknown
}

export const track = (client: Client, ...events: readonly SentEvent[]): Promise<Answer> =>
  client.post('/api/analytics/track', { events })

/** Throws unless the response is 200. */
export async function trackAll(client: Client, events: readonly SentEvent[]): Promise<void> {
  for (let at = 0; at < events.length; at += 100) {
    const { status, text } = await track(client, ...events.slice(at, at + 100))
    if (status !== 200) throw new Error(`${status} ${text}`)
  }
}

export const queryEvents = (client: Client, params: Readonly<Record<string, unknown>> = {}): Promise<Answer> =>
  client.get(`/api/analytics/events${query(params)}`)

export const queryRequests = (client: Client, params: Readonly<Record<string, unknown>> = {}): Promise<Answer> =>
  client.get(`/api/analytics/query${query(params)}`)

/** The number of events, to verify that a refused request changes nothing. */
export async function countEvents(server: TestServer): Promise<number> {
  const { body } = await queryEvents(server.service, { metric: 'count', range: '90d' })
  return body.totalEvents
}

type Rows = readonly Readonly<Record<string, unknown>>[]

/** Rows of an analytics table of a running server, with numeric columns as numbers. */
export async function readRows(server: TestServer, table: string, condition = 'true'): Promise<Rows> {
  const { databaseUrl } = server.settings()
  const rows = databaseUrl
    ? await readOnPostgres(databaseUrl, `SELECT * FROM _analytics.${table} WHERE ${condition}`)
    : readOnSqlite(server.dataFolder, `SELECT * FROM ${table} WHERE ${condition}`)
  return rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value,
      ]),
    ),
  )
}

function readOnSqlite(dataFolder: string, text: string): Rows {
  const database = new Sqlite(join(dataFolder, 'databases/_analytics.sqlite'), { readonly: true })
  try {
    return database.query(text).all() as Rows
  } finally {
    database.close()
  }
}

async function readOnPostgres(url: string, text: string): Promise<Rows> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
