/** Responses that would be larger than `limits.responseBytes`, of everything but records and vectors. */
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

describeServer('responses within their bytes', { config, mode: 'development' }, (server) => {
  const get = async (path: string) => {
    const { status, text, body } = await server.service.get(path)
    expect([status, status === 200 ? '' : text]).toEqual([200, ''])
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(responseBytes)
    return body
  }

  /** All items of a list, page by page, and how many of the pages were cut. */
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

  test('[RES-3] a list of files ends early and goes on, and custom metadata is not in its way', async () => {
    const keys = Array.from({ length: 60 }, (_, n) => `${'k'.repeat(900)}${String(n).padStart(2, '0')}`)
    for (const key of keys) await store(server.service, 'files', { key, content: 'x', metadata: { a: 'b' } })
    const { items, pages } = await walk('/api/storage/files', 'objects')
    expect(items.map(({ key }: { key: string }) => key)).toEqual(keys)
    expect(pages).toBeGreaterThan(1)
  })

  test('[RES-3] a list of users ends early and goes on', async () => {
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

  test('[RES-4] a report of an import stays small, whatever is wrong with the entries', async () => {
    const bad = Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`${'n'.repeat(1000)}${n}`, 1]))
    const users = Array.from({ length: 50 }, (_, n) => ({ email: `b${n}@example.com`, ...bad }))
    const { status, text, body } = await server.service.post('/api/auth/admin/users/import', { users })
    expect([status, body.errors]).toEqual([200, 50])
    expect(text.length).toBeLessThanOrEqual(50 * 1400)
  })

  test('[RES-3] a list of keys ends early and goes on', async () => {
    const keys = Array.from({ length: 150 }, (_, n) => `${'\u0001'.repeat(150)}${String(n).padStart(3, '0')}`)
    const ask = async (body: object) => {
      const answer = await server.service.post('/api/kv/names', body)
      expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
      expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(responseBytes)
      return answer.body
    }
    for (const key of keys) await ask({ action: 'set', key, value: 1 })
    const first = await ask({ action: 'list' })
    expect([first.truncated, typeof first.cursor]).toEqual([true, 'string'])
    const second = await ask({ action: 'list', cursor: first.cursor })
    const third = second.cursor === null ? { keys: [] } : await ask({ action: 'list', cursor: second.cursor })
    expect([...first.keys, ...second.keys, ...third.keys]).toEqual(keys)
  })

  test('[RES-3] a list of events ends early and goes on; so does the list of the most frequent', async () => {
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

  test('[RES-7] a series of too many points is refused', async () => {
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
    expect([refused.status, refused.body.data.groupBy.code]).toEqual([400, 'max'])
    expect((await get(`${series}hour`)).timeSeries.length).toBeLessThan(24)
  })

  test('[RES-5] rows of SQL beyond it are refused, and nothing is written', async () => {
    await exec(server, 'CREATE TABLE t (a TEXT)')
    const text = 'é'.repeat(20_000)
    expect((await exec(server, 'INSERT INTO t VALUES (?) RETURNING a', [text])).body.results).toEqual([{ a: text }])
    for (const statement of [
      'SELECT a, a AS b FROM t',
      'INSERT INTO t SELECT a FROM t RETURNING a, a AS b',
      'UPDATE t SET a = a RETURNING a, a AS b',
    ]) {
      const refused = await exec(server, statement)
      expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('limits.responseBytes')])
    }
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 1 }])
  })

  test('[RES-6] a room is shown with as many players as fit, and the others follow', async () => {
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

  test('[RES-3] a list of rooms ends early and goes on', async () => {
    const ids = Array.from({ length: 260 }, (_, n) => `listed-${String(n).padStart(3, '0')}-${'r'.repeat(110)}`)
    const players = []
    for (const id of ids) players.push(await join(server, 'ann', { namespace: 'game', id }))
    const { items, pages } = await walk('/api/room/admin/rooms', 'rooms')
    const listed = items.map(({ roomId }: { roomId: string }) => roomId)
    expect(listed.filter((id) => id.startsWith('listed-'))).toEqual(ids)
    expect(pages).toBeGreaterThan(1)
    for (const player of players) player.close()
  })

  test('[RES-3] a list of push logs ends early and goes on', async () => {
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

  test('[RES-6] summaries are as many as fit', async () => {
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
