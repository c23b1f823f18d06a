/** Servers killed or terminated under load: acknowledged writes are kept, and no write happens twice. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isReference, parseRecord, readBefore } from '../../../src/features/records/changes/changes.ts'
import type { RecordRow } from '../../../src/features/records/rows.ts'
import type { Answer } from '../../harness/client.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { sendRaw } from '../../harness/raw-http.ts'

const base = '/api/db/shared/tables/items'
const counters = '/api/db/shared/tables/counters'
const space = (id: string): string => `/api/db/space/${id}/tables/items`

const configText = `
const open = { read: true, insert: true, update: true, delete: true }
const schema = { title: { type: 'string' }, n: { type: 'number' }, slug: { type: 'string', unique: true } }
export default {
  rateLimits: { db: { requests: 10000000 } },
  databases: {
    shared: {
      tables: {
        items: { schema, search: ['title'], access: open },
        counters: { schema, access: open },
        ranked: { schema, search: ['title'], searchOptions: { typos: true, substring: true }, access: open },
      },
    },
    space: { instance: true, access: () => true, tables: { items: { schema, access: open } } },
  },
}
`

interface Sent {
  readonly path: string
  readonly method: 'POST' | 'PATCH'
  readonly body: Record<string, unknown>
  readonly key: string
  answer: Answer | null
}

/**
 * Keeps `inFlight` requests running until `enough` are answered, then kills the server while the others still run.
 * Returns all requests; those without a response may or may not have taken effect.
 */
async function sendUntilKilled(
  server: SpawnedServer,
  make: (n: number) => Omit<Sent, 'answer'>,
  { inFlight = 64, enough = 200 },
): Promise<Sent[]> {
  const sent: Sent[] = []
  let answered = 0
  let killing: Promise<void> | null = null
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (!killing) {
        const one: Sent = { ...make(sent.length), answer: null }
        sent.push(one)
        try {
          one.answer = await server.anonymous.request(one.method, one.path, {
            body: one.body,
            headers: { 'idempotency-key': one.key },
          })
        } catch {
          return
        }
        if (++answered >= enough) killing ??= server.kill()
      }
    }),
  )
  await killing
  return sent
}

interface Logged {
  readonly id: string
  readonly before: string | null
  readonly after: string | null
  readonly row: number | null
}

/** The record of an insert that the log refers to: what the first change of the row had before it, or else the row. */
function insertedRecord(database: Database, table: string, key: number, later: readonly Logged[]): RecordRow {
  const change = later.find(({ row, before }) => row === key && before !== null)
  if (change) return readBefore(change.before, change.after === null ? null : JSON.parse(change.after)) as RecordRow
  const { _seq, _version, ...row } = database.query(`SELECT * FROM "${table}" WHERE _seq = ?`).get(key) as RecordRow
  return row
}

/**
 * The records that result from replaying the change log. Asserts that the state before each entry is the state after
 * the entries before it.
 */
function replayChanges(dataFolder: string, table: string): Map<string, unknown> | null {
  const file = join(dataFolder, 'databases', 'shared.sqlite')
  if (!existsSync(file)) return null
  const database = new Database(file)
  const rows = new Map<string, unknown>()
  try {
    const logged = database
      .query<Logged, [string]>('SELECT id, before, after, row FROM _changes WHERE "table" = ? ORDER BY seq')
      .all(table)
    const inserted = (id: string, record: RecordRow | null): void => {
      expect(rows.get(id) ?? null).toBeNull()
      rows.set(id, record)
    }
    for (const [at, { id, before, after, row }] of logged.entries()) {
      if (isReference(after)) {
        const later = logged.slice(at + 1)
        for (const [offset] of (JSON.parse(after as string) as number[]).entries()) {
          const record = insertedRecord(database, table, (row as number) + offset, later)
          inserted(record.id as string, record)
        }
        continue
      }
      const record = parseRecord(after)
      expect(rows.get(id) ?? null).toEqual(readBefore(before, record))
      if (after === null) rows.delete(id)
      else rows.set(id, record)
    }
  } finally {
    database.close()
  }
  return rows
}

async function allRecords(server: SpawnedServer, path: string): Promise<Map<string, Record<string, unknown>>> {
  const rows = new Map<string, Record<string, unknown>>()
  for (let cursor = '', more = true; more; ) {
    const { body } = await server.service.get(`${path}?limit=1000&after=${encodeURIComponent(cursor)}`)
    for (const item of body.items) rows.set(item.id, item)
    more = body.hasMore
    cursor = body.cursor
  }
  expect((await server.service.get(`${path}/count`)).body.total).toBe(rows.size)
  return rows
}

describe('a server killed under load', () => {
  let server: SpawnedServer | null = null
  afterEach(async () => {
    await server?.remove()
    server = null
  })

  test('[DB-TABLE-16, DB-IDEM-6] keeps two hundred acknowledged inserts, and repeating all requests inserts nothing twice', async () => {
    const running = await spawnServer(configText)
    server = running
    const sent = await sendUntilKilled(
      running,
      (n) => ({ method: 'POST', path: base, body: { title: `title ${n}`, n, slug: `s${n}` }, key: `insert-${n}` }),
      {},
    )
    const acknowledged = sent.filter(({ answer }) => answer !== null)
    expect(acknowledged.length).toBeGreaterThanOrEqual(200)
    expect(acknowledged.filter(({ answer }) => answer?.status !== 201)).toEqual([])

    const logged = replayChanges(running.dataFolder, 'items')
    await running.start()
    const rows = await allRecords(running, base)
    if (logged) expect(rows).toEqual(logged as typeof rows)
    for (const { answer } of acknowledged) expect(rows.get(answer?.body.id)).toEqual(answer?.body)
    expect(rows.size).toBeLessThanOrEqual(sent.length)
    expect((await running.service.get(`${base}/search?q=title&limit=1`)).body.total).toBe(rows.size)

    for (const one of sent) {
      const again = await running.anonymous.post(one.path, one.body, { 'idempotency-key': one.key })
      expect(again.status).toBe(201)
      if (one.answer) expect(again.text).toBe(one.answer.text)
    }
    expect((await allRecords(running, base)).size).toBe(sent.length)
  })

  test('[DB-SEARCH-10] the index of terms has every record, and no other', async () => {
    const running = await spawnServer(configText)
    server = running
    const ranked = '/api/db/shared/tables/ranked'
    for (let round = 0; round < 2; round++) {
      const make = (n: number): Omit<Sent, 'answer'> => ({
        method: 'POST',
        path: `${ranked}?upsert=true`,
        body: { id: `r${n % 150}`, title: `Heidelberg ${n % 2 === 0 ? 'castle' : 'bridge'}`, n },
        key: `ranked-${round}-${n}`,
      })
      await sendUntilKilled(running, make, {})
      await running.start()
      const rows = [...(await allRecords(running, ranked)).values()]
      for (const [q, word] of [
        ['heidelbreg', 'Heidelberg'],
        ['casle', 'castle'],
        ['ridg', 'bridge'],
      ] as const) {
        const { body } = await running.service.get(`${ranked}/search?q=${q}&limit=1000`)
        const expected = rows.filter(({ title }) => String(title).includes(word)).map(({ id }) => id)
        expect(body.items.map(({ id }: { id: string }) => id).sort()).toEqual(expected.sort())
      }
    }
  })

  test('[DB-VER-4] after a crash versions are at least the acknowledged ones, and increase with later writes', async () => {
    const running = await spawnServer(configText)
    server = running
    const ids = ['a', 'b', 'c']
    const versionOf = ({ headers }: Answer): number => Number(/^"(\d+)-/.exec(headers.get('etag') ?? '')?.[1])
    await running.service.post(`${counters}/batch`, { inserts: ids.map((id) => ({ id, n: 0 })) })
    for (let round = 0; round < 3; round++) {
      const make = (n: number): Omit<Sent, 'answer'> => {
        const body = { n: { $op: 'increment', value: 1 } }
        return { method: 'PATCH', path: `${counters}/${ids[n % 3]}`, body, key: `version-${round}-${n}` }
      }
      const sent = await sendUntilKilled(running, make, { enough: 90 })
      await running.start()
      for (const id of ids) {
        const acknowledged = sent.flatMap(({ path, answer }) =>
          answer && path.endsWith(id) ? [versionOf(answer)] : [],
        )
        expect(new Set(acknowledged).size).toBe(acknowledged.length)
        const found = versionOf(await running.anonymous.get(`${counters}/${id}`))
        expect(found).toBeGreaterThanOrEqual(Math.max(...acknowledged))
        expect(versionOf(await running.anonymous.patch(`${counters}/${id}`, { n: 0 }))).toBeGreaterThan(found)
      }
    }
  })

  test('[DB-TABLE-16, DB-IDEM-6, DB-BATCH-3] keeps acknowledged increments, batches and instances over three crashes', async () => {
    const running = await spawnServer(configText)
    server = running
    const accounts = ['a', 'b', 'c', 'd']
    await running.service.post(`${counters}/batch`, { inserts: accounts.map((id) => ({ id, n: 0 })) })
    let total = 0
    const instances = new Set<string>()
    for (let round = 0; round < 3; round++) {
      const make = (n: number): Omit<Sent, 'answer'> => {
        const key = `round-${round}-${n}`
        const move = (value: number) => ({ n: { $op: 'increment', value } })
        const [from = '', to = ''] = [accounts[n % 4], accounts[(n + 1 + (n % 3)) % 4]]
        if (n % 3 === 0)
          return {
            method: 'POST',
            path: `${counters}/batch`,
            key,
            body: {
              updates: [
                { id: from, data: move(-1) },
                { id: to, data: move(1) },
              ],
            },
          }
        if (n % 3 === 1)
          return {
            method: 'POST',
            path: `${counters}/batch-by-filter`,
            key,
            body: { action: 'update', filter: [['id', '==', from]], data: move(1) },
          }
        return { method: 'POST', path: space(`r${round}-${n % 20}`), key, body: { n } }
      }
      const sent = await sendUntilKilled(running, make, { enough: 90 })
      const logged = replayChanges(running.dataFolder, 'counters')
      await running.start()
      const rows = await allRecords(running, counters)
      if (logged) expect(rows).toEqual(logged as typeof rows)
      const sum = [...rows.values()].reduce((all, { n }) => all + (n as number), 0)
      const increments = sent.filter(({ path }) => path.endsWith('by-filter'))
      expect(sum - total).toBeGreaterThanOrEqual(increments.filter(({ answer }) => answer?.status === 200).length)
      expect(sum - total).toBeLessThanOrEqual(increments.length)
      for (const { path, answer } of sent)
        if (path.startsWith('/api/db/space') && answer)
          expect((await running.service.get(`${path}/${answer.body.id}`)).body).toEqual(answer.body)

      // After repeating all requests, each has taken effect once.
      for (const { path, body, key } of sent) {
        if (path.startsWith('/api/db/space')) instances.add(path)
        expect((await running.anonymous.post(path, body, { 'idempotency-key': key })).status).toBeLessThan(300)
      }
      total += increments.length
      const repeated = await allRecords(running, counters)
      expect([...repeated.values()].reduce((all, { n }) => all + (n as number), 0)).toBe(total)
    }
    expect(instances.size).toBeGreaterThan(20)
  })
})

describe('a terminated server', () => {
  test('[SYS-15] completes running requests, refuses new ones and exits with 0', async () => {
    const server = await spawnServer(configText)
    try {
      const body = '{"id":"under-way","title":"x"}'
      const head = `POST ${base} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
      const slow = slowRequest(server.url, head + body.slice(0, 10))
      // The response to a later request shows that the server has read the headers of the slow one.
      expect((await server.anonymous.post(base, { id: 'before' })).status).toBe(201)
      const ending = server.terminate()
      expect(await refusesSoon(server)).toBe(true)
      slow.send(body.slice(10))
      const answer = await slow.answer
      expect(answer).toMatch(/^HTTP\/1\.1 201 /)
      expect(answer.toLowerCase()).toContain('connection: close')
      expect(await ending).toBe(0)
      await server.start()
      for (const id of ['before', 'under-way']) expect((await server.service.get(`${base}/${id}`)).status).toBe(200)
    } finally {
      await server.remove()
    }
  })

  test('[SYS-15, DB-TABLE-16] keeps every acknowledged write', async () => {
    const server = await spawnServer(configText)
    try {
      const answered: string[] = []
      let isEnding = false
      const load = Array.from({ length: 16 }, async () => {
        for (;;) {
          const answer = await server.anonymous.post(base, { title: 'x' }).catch(() => null)
          if (answer === null || answer.status === 503) return
          expect(answer.status).toBe(201)
          answered.push(answer.body.id)
          if (answered.length === 100 && !isEnding) isEnding = true
        }
      })
      while (!isEnding) await server.anonymous.get('/api/health')
      expect(await server.terminate()).toBe(0)
      await Promise.all(load)
      await server.start()
      const rows = await allRecords(server, base)
      expect(answered.filter((id) => !rows.has(id))).toEqual([])
      expect(rows.size).toBe(answered.length)
    } finally {
      await server.remove()
    }
  })
})

/** Resolves to true once a new connection is refused or gets 503. */
async function refusesSoon(server: SpawnedServer): Promise<boolean> {
  for (let tries = 0; tries < 2000; tries++) {
    const status = await sendRaw(server.url, 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n').then(
      (answer) => answer.status,
      () => 0,
    )
    if (status !== 200) return status === 0 || status === 503
  }
  return false
}

/** A request that is sent in parts; `answer` is everything received until the connection ends. */
function slowRequest(url: string, start: string): { send(rest: string): void; answer: Promise<string> } {
  const { hostname, port } = new URL(url)
  const done = Promise.withResolvers<string>()
  let text = ''
  const connecting = Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(start),
      data: (_, chunk) => {
        text += chunk.toString()
      },
      close: () => done.resolve(text),
      error: (_, error) => done.reject(error),
    },
  })
  return { send: (rest) => void connecting.then((socket) => socket.write(rest)), answer: done.promise }
}
