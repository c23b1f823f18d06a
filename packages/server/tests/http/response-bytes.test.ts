/** Responses that would exceed `limits.responseBytes`, except those of records and vectors. */
import { afterAll, expect, test } from 'bun:test'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { query } from '../harness/client.ts'
import { openFcm } from '../harness/push/fcm.ts'
import { exec } from '../harness/resources/sql.ts'
import { join } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import { store } from '../harness/storage/files.ts'

const fcm = openFcm()
afterAll(() => fcm.close())

const responseBytes = 64 * 1024
const config = {
  limits: { responseBytes: '64kb' },
  push: { fcm: fcm.config },
  rateLimits: { push: { requests: 1_000_000 } },
  storage: { buckets: { files: { access: { read: true } } } },
  kv: { names: {} },
  sql: { main: {} },
  rooms: {
    game: {
      access: { join: true },
      actions: {
        fill(room: Room, player: RoomPlayer) {
          player.state.text = 'é'.repeat(10_000)
          room.setMetadata({ text: 'é'.repeat(7000) })
        },
      },
    },
  },
} as const

describeServer('the size of responses', { config, mode: 'development' }, (server) => {
  const get = async (path: string) => {
    const { status, text, body } = await server.service.get(path)
    if (status !== 200) throw new Error(`${path} returned ${status}: ${text}`)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(responseBytes)
    return body
  }

  /** All items of a list, and the number of its pages. */
  async function walk(path: string, name: string, params: Record<string, unknown> = {}) {
    const items = []
    let pages = 0
    let cursor: string | null | undefined
    do {
      const body = await get(path + query({ limit: 1000, ...params, ...(cursor ? { cursor } : {}) }))
      items.push(...body[name])
      cursor = body.cursor
      pages += 1
      if (cursor) expect(body.truncated).toBe(true)
    } while (cursor)
    return { items, pages }
  }

  test('[RES-3] a list of files with custom metadata is split into pages', async () => {
    const keys = Array.from({ length: 60 }, (_, n) => `${'k'.repeat(900)}${String(n).padStart(2, '0')}`)
    for (const key of keys) await store(server.service, 'files', { key, content: 'x', metadata: { a: 'b' } })
    const { items, pages } = await walk('/api/storage/files', 'objects')
    expect(items.map(({ key }: { key: string }) => key)).toEqual(keys)
    expect(pages).toBeGreaterThan(1)
  })

  test('[RES-3] a list of users is split into pages', async () => {
    const users = Array.from({ length: 60 }, (_, n) => ({
      email: `u${n}@example.com`,
      displayName: 'é'.repeat(200),
      avatarUrl: `https://example.com/${'a'.repeat(1500)}`,
      metadata: { text: 'x'.repeat(15_000) },
    }))
    expect((await server.service.post('/api/auth/admin/users/import', { users })).body.imported).toBe(60)
    const { items, pages } = await walk('/api/auth/admin/users', 'users')
    expect(new Set(items.map(({ email }: { email: string }) => email)).size).toBe(60)
    expect(pages).toBeGreaterThan(1)
  })

  test('[RES-4] the report of an import with many invalid members is small', async () => {
    const bad = Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`${'n'.repeat(1000)}${n}`, 1]))
    const users = Array.from({ length: 50 }, (_, n) => ({ email: `b${n}@example.com`, ...bad }))
    const { status, text, body } = await server.service.post('/api/auth/admin/users/import', { users })
    expect(status).toBe(200)
    expect(body.errors).toBe(50)
    expect(text.length).toBeLessThanOrEqual(50 * 1400)
  })

  test('[RES-3] a list of KV keys is split into pages', async () => {
    const keys = Array.from({ length: 150 }, (_, n) => `${'\u0001'.repeat(150)}${String(n).padStart(3, '0')}`)
    const perform = async (action: object) => {
      const { status, text, body } = await server.service.post('/api/kv/names', action)
      if (status !== 200) throw new Error(`${JSON.stringify(action)} returned ${status}: ${text}`)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(responseBytes)
      return body
    }
    for (const key of keys) await perform({ action: 'set', key, value: 1 })
    const first = await perform({ action: 'list' })
    expect(first.truncated).toBe(true)
    expect(first.cursor).toBeString()
    const second = await perform({ action: 'list', cursor: first.cursor })
    const third = second.cursor === null ? { keys: [] } : await perform({ action: 'list', cursor: second.cursor })
    expect([...first.keys, ...second.keys, ...third.keys]).toEqual(keys)
  })

  test('[RES-3] a list of events is split into pages, and the list of top events is truncated', async () => {
    const value = 'é'.repeat(1800)
    const name = (n: number): string => `event ${n} ${'\u0001'.repeat(100)}`
    for (let at = 0; at < 100; at += 50) {
      const events = Array.from({ length: 50 }, (_, n) => ({ name: name(at + n), properties: { value } }))
      expect((await server.service.post('/api/analytics/track', { events })).status).toBe(200)
    }
    const { items, pages } = await walk('/api/analytics/events', 'events')
    expect(items).toHaveLength(100)
    expect(new Set(items.map(({ id }: { id: string }) => id)).size).toBe(100)
    expect(items.every(({ properties }: { properties: object }) => Bun.deepEquals(properties, { value }))).toBe(true)
    expect(pages).toBeGreaterThan(1)
    const top = await get('/api/analytics/events?metric=topEvents&limit=1000')
    expect(top.truncated).toBe(true)
    expect(top.topEvents.length).toBeLessThan(100)
  })

  test('[RES-7] a time series with too many points is refused', async () => {
    const hour = 60 * 60 * 1000
    const now = Date.now()
    for (let at = 0; at < 5; at++) {
      const events = Array.from({ length: 100 }, (_, n) => ({
        name: 'tick',
        timestamp: now - 2 * hour - (at * 100 + n) * 60_000,
      }))
      expect((await server.service.post('/api/analytics/track', { events })).status).toBe(200)
    }
    const series = '/api/analytics/events?metric=timeSeries&range=24h&groupBy='
    const refused = await server.service.get(`${series}minute`)
    expect(refused).toMatchObject({ status: 400, body: { data: { groupBy: { code: 'max' } } } })
    expect((await get(`${series}hour`)).timeSeries.length).toBeLessThan(24)
  })

  test('[RES-5] a SQL statement with too large a result is refused, and writes nothing', async () => {
    await exec(server, 'CREATE TABLE t (a TEXT)')
    const text = 'é'.repeat(20_000)
    expect((await exec(server, 'INSERT INTO t VALUES (?) RETURNING a', [text])).body.results).toEqual([{ a: text }])
    for (const statement of [
      'SELECT a, a AS b FROM t',
      'INSERT INTO t SELECT a FROM t RETURNING a, a AS b',
      'UPDATE t SET a = a RETURNING a, a AS b',
    ]) {
      const refused = await exec(server, statement)
      expect(refused.status).toBe(400)
      expect(refused.body.message).toContain('limits.responseBytes')
    }
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 1 }])
  })

  test('[RES-6] an inspected room contains as many players as fit, and the cursor returns the others', async () => {
    const ids = Array.from({ length: 6 }, (_, n) => `player-${n}`)
    const players = []
    for (const id of ids) {
      const player = await join(server, id, { namespace: 'game', id: 'full' })
      await player.act('fill')
      players.push(player)
    }
    const path = '/api/room/admin/room?namespace=game&id=full'
    const seen = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const body: { players: { userId: string; state: { text: string } }[]; cursor: string | null } = await get(
        cursor === '' ? path : `${path}&cursor=${cursor}`,
      )
      seen.push(...body.players)
      cursor = body.cursor
    }
    expect(seen.map(({ userId }) => userId)).toEqual(ids)
    expect(seen.every(({ state }) => state.text.length === 10_000)).toBe(true)
    expect((await server.service.get(`${path}&cursor=x!`)).status).toBe(400)
    for (const player of players) player.close()
  })

  test('[RES-3] a list of rooms is split into pages', async () => {
    const ids = Array.from({ length: 260 }, (_, n) => `listed-${String(n).padStart(3, '0')}-${'r'.repeat(110)}`)
    const players = []
    for (const id of ids) players.push(await join(server, 'ann', { namespace: 'game', id }))
    const { items, pages } = await walk('/api/room/admin/rooms', 'rooms')
    const listed = items.map(({ roomId }: { roomId: string }) => roomId)
    expect(listed.filter((id) => id.startsWith('listed-'))).toEqual(ids)
    expect(pages).toBeGreaterThan(1)
    for (const player of players) player.close()
  })

  test('[RES-3] a list of push logs is split into pages', async () => {
    const device = { deviceId: 'phone', token: 'token-of-a-phone', platform: 'android' }
    expect((await server.as('ann').post('/api/push/register', device)).status).toBe(200)
    const titles = Array.from({ length: 60 }, (_, n) => `${n} ${'\u0001é'.repeat(200)}`)
    for (const title of titles)
      expect((await server.service.post('/api/push/send', { userId: 'ann', title, body: 'b' })).status).toBe(200)
    const { items, pages } = await walk('/api/push/logs', 'logs')
    expect(items.map(({ title }: { title: string }) => title)).toEqual(
      titles.toReversed().map((title) => title.slice(0, items[0].title.length)),
    )
    expect(new Set(items.map(({ id }: { id: string }) => id)).size).toBe(60)
    expect(pages).toBeGreaterThan(1)
  })

  test('[RES-6] the summaries of rooms contain as many rooms as fit', async () => {
    const ids = Array.from({ length: 8 }, (_, n) => `room-${n}`)
    for (const id of ids) {
      const player = await join(server, 'ann', { namespace: 'game', id })
      await player.act('fill')
    }
    const { text, body } = await server.service.post('/api/room/summaries', { namespace: 'game', ids })
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(responseBytes)
    expect(body.truncated).toBe(true)
    const shown = body.items.map(({ roomId }: { roomId: string }) => roomId)
    expect(shown).toEqual(ids.slice(0, shown.length))
    const rest = await server.service.post('/api/room/summaries', { namespace: 'game', ids: ids.slice(shown.length) })
    expect(rest.body.items.length).toBeGreaterThan(0)
  })
})
