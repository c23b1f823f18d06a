/** Key-value entries as administrators browse them: with sizes and times, by prefix and page. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { query } from '../harness/client.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { kvPath, openStore } from '../harness/resources/kv.ts'
import { describeServer } from '../harness/server.ts'

const config = {
  kv: { cache: { writeInterval: 0 }, other: {} },
  serviceKeys: [
    { name: 'cache', key: 'a-key-that-may-read-cache', scopes: ['kv:namespace:cache:read'] },
    { name: 'writer', key: 'a-key-that-may-write-cache', scopes: ['kv:namespace:cache:write'] },
  ],
} as const

const clock = manualClock(Date.UTC(2026, 0, 1))
/** The time that many seconds from now; engines share the clock. */
const at = (seconds: number): string => new Date(clock.now() + seconds * 1000).toISOString()

describeServer('browsing key-value stores', { config, clock }, (server) => {
  const cache = openStore(server.service, 'cache')
  const list = (of: Record<string, unknown> = {}) => server.service.get(`${kvPath('cache')}${query(of)}`)
  const get = (key: string) => server.service.get(`${kvPath('cache')}/entry${query({ key })}`)

  test('[KV-21] entries are listed with sizes and times, by prefix and page', async () => {
    await cache.set('a/1', 'é')
    await cache.set('a/2', { x: 1 }, { ttl: 60 })
    await cache.set('b', null)
    await cache.set('gone', 1)
    await cache.delete('gone')
    const entries = [
      { key: 'a/1', valueBytes: 4, writtenAt: at(0), expiresAt: null },
      { key: 'a/2', valueBytes: 7, writtenAt: at(0), expiresAt: at(60) },
      { key: 'b', valueBytes: 4, writtenAt: at(0), expiresAt: null },
    ]
    expect((await list()).body).toEqual({ items: entries, cursor: null })
    expect((await list({ prefix: 'a/' })).body.items).toEqual(entries.slice(0, 2))
    const first = (await list({ limit: 2 })).body
    expect(first.items).toEqual(entries.slice(0, 2))
    expect((await list({ limit: 2, cursor: first.cursor })).body).toEqual({ items: entries.slice(2), cursor: null })
    for (const bad of [{ cursor: first.cursor, prefix: 'a' }, { cursor: 'x' }, { limit: 0 }, { prefix: '\0' }])
      expectRefusal(await list(bad), 400)
  })

  test('[KV-21] an entry is read with its value; an absent or expired one is 404', async () => {
    await cache.set('a/2', { x: [1, 'é'] }, { ttl: 60 })
    expect((await get('a/2')).body).toEqual({
      key: 'a/2',
      value: { x: [1, 'é'] },
      valueBytes: 14,
      writtenAt: at(0),
      expiresAt: at(60),
    })
    expectRefusal(await get('none'), 404, 'Key')
    expectRefusal(await server.service.get(`${kvPath('cache')}/entry`), 400)
    clock.advance(60_000)
    expectRefusal(await get('a/2'), 404, 'Key')
    expect((await list({ prefix: 'a/2' })).body.items).toEqual([])
  })

  test('[KV-21] reading needs the read scope of the namespace', async () => {
    const [reader, writer] = [server.withKey('a-key-that-may-read-cache'), server.withKey('a-key-that-may-write-cache')]
    expect((await reader.get(kvPath('cache'))).status).toBe(200)
    for (const path of [kvPath('cache'), `${kvPath('cache')}/entry?key=b`]) {
      expectRefusal(await writer.get(path), 401)
      expectRefusal(await server.anonymous.get(path), 401)
      expectRefusal(await server.as('ann').get(path), 403)
    }
    for (const name of ['other', 'nothing']) expectRefusal(await reader.get(kvPath(name)), 401)
    for (const name of ['nothing', '__proto__']) {
      expectRefusal(await server.service.get(kvPath(name)), 404, 'Namespace')
      expectRefusal(await server.service.get(`${kvPath(name)}/entry?key=a`), 404, 'Namespace')
    }
  })
})
