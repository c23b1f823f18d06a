/** The audit log: entries of actions, masks, search, export, and the verification of the chain. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { sha256 } from '../../src/base/crypto/hash.ts'
import type { AuditItem } from '../../src/features/dashboard/audit/reader.ts'
import { type Answer, type Client, query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import {
  createAdministrator,
  openAdministrator,
  pageClient,
  pageHeaders,
  signInToDashboard,
} from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { join } from '../harness/rooms/rooms.ts'
import { describeServer, rootKey, type TestServer } from '../harness/server.ts'

const clock = manualClock()
const unlimited = { requests: 10_000_000 }
const tables = {
  posts: {
    schema: {
      title: { type: 'string' },
      views: { type: 'number' },
      note: { type: 'string' },
      apiToken: { type: 'string' },
    },
    hidden: ['note'],
    access: open,
  },
} as const
const config = {
  databases: { shared: { tables }, space: { instance: true, access: () => true, tables } },
  storage: { buckets: { pictures: {} } },
  kv: { cache: {} },
  broadcasts: { news: { subscribe: true, publish: true } },
  vector: { docs: { dimensions: 2 } },
  sql: { reports: {} },
  rooms: { lobby: { access: { join: true } } },
  rateLimits: { auth: unlimited, signin: unlimited, db: unlimited, storage: unlimited },
  serviceKeys: [{ name: 'importer', key: 'key-of-the-importer', scopes: ['db:table:*:*'] }],
} as const
const posts = '/api/db/shared/tables/posts'

/** Every entry, oldest first. */
async function entriesOf(server: TestServer, filter: object = {}): Promise<AuditItem[]> {
  const answer = await server.service.get(`/api/audit/export${query({ ...filter })}`)
  expect(answer.status).toBe(200)
  return answer.text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

/** The entries that `act` leaves. */
async function entriesOfAct(server: TestServer, act: () => Promise<unknown>): Promise<AuditItem[]> {
  const known = new Set((await entriesOf(server)).map(({ id }) => id))
  await act()
  return (await entriesOf(server)).filter(({ id }) => !known.has(id))
}

const verify = async (server: TestServer, hash?: string) =>
  (await server.service.get(`/api/audit/verify${query({ hash })}`)).body

describeServer('audit', { config, clock }, (server) => {
  const multipart = (key: string): FormData => {
    const form = new FormData()
    form.set('key', key)
    form.set('file', new Blob([key], { type: 'text/plain' }), 'note.txt')
    return form
  }

  test('[DASH-16] each of 40 actions of an administrator leaves one entry', async () => {
    const owner = await openAdministrator(server, 'owner')
    const { client } = owner
    await join(server, 'ann', { namespace: 'lobby', id: 'r1' })
    const user = await createAdministrator(server, null)
    const userPath = `/api/auth/admin/users/${user.id}`
    const put = (path: string, body: unknown) => client.request('PUT', path, { body })
    const upload = (key: string) => client.request('POST', '/api/storage/pictures/upload', { raw: multipart(key) })
    const actions: readonly (readonly [string, () => Promise<Answer>])[] = [
      ['records.insert', () => client.post(posts, { id: 'a', title: 'one' })],
      ['records.insert', () => client.post(`${posts}?upsert=true`, { id: 'a', title: 'two' })],
      ['records.update', () => client.patch(`${posts}/a`, { title: 'three' })],
      ['records.batch', () => client.post(`${posts}/batch`, { inserts: [{ id: 'b' }, { id: 'c' }], deletes: ['a'] })],
      [
        'records.batchByFilter',
        () => client.post(`${posts}/batch-by-filter`, { action: 'delete', filter: [['id', '==', 'c']] }),
      ],
      [
        'records.transaction',
        () => client.post('/api/db/shared/transaction', { operations: [{ table: 'posts', insert: { id: 'd' } }] }),
      ],
      ['records.delete', () => client.delete(`${posts}/d`)],
      ['records.insert', () => client.post('/api/db/space/x/tables/posts', { id: 'a' })],
      ['records.update', () => client.patch('/api/db/space/x/tables/posts/a', { title: 'x' })],
      ['records.delete', () => client.delete('/api/db/space/x/tables/posts/a')],
      ['kv.perform', () => client.post('/api/kv/cache', { action: 'set', key: 'k', value: 1 })],
      ['kv.perform', () => client.post('/api/kv/cache', { action: 'delete', key: 'other' })],
      [
        'vector.perform',
        () => client.post('/api/vector/docs', { action: 'upsert', vectors: [{ id: 'v', values: [1, 0] }] }),
      ],
      ['vector.perform', () => client.post('/api/vector/docs', { action: 'delete', ids: ['v'] })],
      ['sql.exec', () => client.post('/api/sql/reports', { query: 'CREATE TABLE t (a INTEGER)' })],
      ['sql.exec', () => client.post('/api/sql/reports', { query: 'INSERT INTO t VALUES (1)' })],
      [
        'subscriptions.broadcast',
        () => client.post('/api/db/broadcast', { channel: 'broadcast:news', event: 'e', payload: {} }),
      ],
      ['storage.upload', () => upload('one.txt')],
      ['storage.upload', () => upload('two.txt')],
      ['storage.updateMetadata', () => client.patch('/api/storage/pictures/one.txt/metadata', { a: 'b' })],
      ['storage.signedUploadUrl', () => client.post('/api/storage/pictures/signed-upload-url', { key: 'three.txt' })],
      ['storage.delete', () => client.delete('/api/storage/pictures/one.txt')],
      ['storage.deleteBatch', () => client.post('/api/storage/pictures/delete-batch', { keys: ['two.txt'] })],
      ['storage.multipartCreate', () => client.post('/api/storage/pictures/multipart/create', { key: 'large.bin' })],
      ['rooms.hibernate', () => client.post('/api/room/admin/hibernate', { namespace: 'lobby', id: 'r1' })],
      ['functions.secrets.set', () => put('/api/functions/secrets/STRIPE_KEY', { value: 'sk_live_secret_value' })],
      ['functions.secrets.remove', () => client.delete('/api/functions/secrets/STRIPE_KEY')],
      [
        'admin.createUser',
        () => client.post('/api/auth/admin/users', { email: 'new@example.org', password: 'password of the new one' }),
      ],
      ['admin.updateUser', () => client.patch(userPath, { displayName: 'Ann' })],
      ['admin.updateUser', () => client.patch(userPath, { password: 'another password of Ann' })],
      ['admin.updateUser', () => client.patch(userPath, { disabled: true })],
      ['admin.updateUser', () => client.patch(userPath, { disabled: false })],
      ['admin.setClaims', () => put(`${userPath}/claims`, { plan: 'pro' })],
      ['admin.revokeSessions', () => client.post(`${userPath}/revoke`, undefined)],
      ['admin.removeFactors', () => client.delete(`${userPath}/mfa`)],
      ['admin.setDashboardRole', () => put(`${userPath}/dashboard-role`, { role: 'viewer' })],
      ['admin.setDashboardRole', () => put(`${userPath}/dashboard-role`, { role: null })],
      [
        'admin.importUsers',
        () => client.post('/api/auth/admin/users/import', { users: [{ email: 'imported@example.org' }] }),
      ],
      ['admin.rotateKeys', () => client.post('/api/auth/admin/keys/rotate', undefined)],
      ['admin.deleteUser', () => client.delete(userPath)],
      ['dashboard.signOut', () => client.delete('/api/session')],
    ]
    let done = 0
    for (const [action, act] of actions) {
      let answer: Answer | undefined
      const entries = await entriesOfAct(server, async () => {
        answer = await act()
      })
      if (!answer || answer.status >= 300) throw new Error(`${action}: ${answer?.status} ${answer?.text}`)
      expect(entries.map((entry) => entry.action)).toEqual([action])
      expect(entries[0]).toMatchObject({
        actor: `admin:${owner.id}`,
        actorName: owner.email,
        via: 'dashboard',
        outcome: 'done',
        ip: expect.any(String),
        target: expect.stringMatching(/^\/(?:api|dashboard\/api)\//),
      })
      done += 1
    }
    expect(done).toBeGreaterThanOrEqual(40)
    expect(await verify(server)).toMatchObject({ ok: true, broken: null, removed: 0 })
  })

  test('[DASH-17] requests that change nothing leave no entry', async () => {
    const owner = await openAdministrator(server, 'owner')
    const viewer = await openAdministrator(server, 'viewer')
    const { client } = owner
    const entries = await entriesOfAct(server, async () => {
      await client.get(posts)
      await client.request('HEAD', posts)
      await client.post('/api/kv/cache', { action: 'get', key: 'k' })
      await client.post('/api/vector/docs', { action: 'search', vector: [1, 0], topK: 1 })
      await client.post('/api/sql/reports', { query: 'SELECT 1' })
      await client.post('/api/room/summaries', { namespace: 'lobby', ids: [] })
      expectRefusal(await client.patch(`${posts}/missing`, { title: 'x' }), 404)
      expectRefusal(await client.post(posts, { views: 'not a number' }), 400)
      expectRefusal(await viewer.client.post(posts, { title: 'x' }), 403)
      expectRefusal(
        await server.withKey('key-of-the-importer').post('/api/kv/cache', { action: 'set', key: 'k', value: 1 }),
        401,
      )
      expect((await server.as('ann').post(posts, { title: 'of a user' })).status).toBe(201)
      expect((await server.service.post('/api/analytics/track', { events: [{ name: 'seen' }] })).status).toBe(200)
    })
    expect(entries).toEqual([])
  })

  test('[DASH-18] an entry has what was before and after, without secrets and hidden fields', async () => {
    const owner = await openAdministrator(server, 'owner')
    const { client } = owner
    const record = { id: 'm', title: 'one', note: 'hidden note', apiToken: 'token-value-1', views: 1 }
    const entries = await entriesOfAct(server, async () => {
      await client.post(posts, record)
      await client.patch(`${posts}/m`, { title: 'two', note: 'another hidden note' })
      await client.delete(`${posts}/m`)
      await client.post(`${posts}/batch`, { inserts: Array.from({ length: 30 }, (_, at) => ({ id: `many${at}` })) })
      await client.request('PUT', '/api/functions/secrets/KEY', { body: { value: 'value of the secret' } })
      const user = await createAdministrator(server, null)
      await client.patch(`/api/auth/admin/users/${user.id}`, { displayName: 'Bob', password: 'new password of Bob' })
      await client.post('/api/kv/cache', { action: 'set', key: 'large', value: Array(2000).fill('x'.repeat(100)) })
    })
    const [inserted, updated, deleted, batch, secret, created, changed, large] = entries
    const masked = { note: '[hidden]', apiToken: '[masked]' }
    expect(inserted).toMatchObject({ before: null, after: { id: 'm', title: 'one', views: 1, ...masked } })
    expect(updated).toMatchObject({ before: { title: 'one', ...masked }, after: { title: 'two', ...masked } })
    expect(deleted).toMatchObject({ before: { title: 'two', ...masked }, after: null })
    const shown = (batch?.after ?? []) as unknown[]
    expect(shown).toHaveLength(21)
    expect(shown.at(-1)).toEqual({ more: 10 })
    expect(secret).toMatchObject({ target: '/api/functions/secrets/KEY', before: null, after: null })
    expect(created).toMatchObject({
      via: 'service-key',
      actor: 'root',
      before: null,
      after: { email: expect.any(String) },
    })
    expect(changed).toMatchObject({
      before: { displayName: null },
      after: { displayName: 'Bob', password: '[masked]' },
    })
    expect(JSON.stringify(large?.after).length).toBeLessThan(16 * 1024)
    const text = JSON.stringify(entries)
    for (const hidden of ['hidden note', 'token-value-1', 'value of the secret', 'new password of Bob', rootKey])
      expect(text).not.toContain(hidden)
  })

  test('[DASH-16] actions of service keys are recorded with the name of the key', async () => {
    const key = server.withKey('key-of-the-importer')
    const entries = await entriesOfAct(server, async () => {
      await Promise.all(Array.from({ length: 50 }, (_, at) => key.post(posts, { id: `key${at}` })))
    })
    expect(entries).toHaveLength(50)
    expect(new Set(entries.map(({ target, after }) => `${target} ${(after as { id: string }).id}`)).size).toBe(50)
    expect(entries[0]).toMatchObject({
      actor: 'importer',
      actorName: null,
      via: 'service-key',
      action: 'records.insert',
    })
    expect(await verify(server)).toMatchObject({ ok: true })
  })

  test('[DASH-16] signing in is recorded', async () => {
    const user = await createAdministrator(server, 'viewer')
    const entries = await entriesOfAct(server, () => signInToDashboard(server, user))
    expect(entries).toMatchObject([{ action: 'dashboard.signIn', actor: `admin:${user.id}`, actorName: user.email }])
    expect(await entriesOfAct(server, () => signInToDashboard(server, { ...user, password: 'wrong' }))).toEqual([])
  })

  test('[DASH-19] the log is searched by actor, action, target and time, in pages', async () => {
    const owner = await openAdministrator(server, 'owner')
    clock.advance(60_000)
    const from = new Date(clock.now()).toISOString()
    for (const id of ['s1', 's2', 's3']) await owner.client.post(posts, { id })
    await owner.client.delete(`${posts}/s1`)
    clock.advance(60_000)
    const to = new Date(clock.now()).toISOString()
    await owner.client.delete(`${posts}/s2`)
    const list = async (client: Client, filter: Readonly<Record<string, unknown>>) =>
      (await client.get(`/api/audit${query(filter)}`)).body
    const actor = `admin:${owner.id}`
    const actionsOf = async (filter: Readonly<Record<string, unknown>>) =>
      (await list(owner.client, filter)).items.map(({ action }: AuditItem) => action)
    expect(await actionsOf({ actor, action: 'records.' })).toEqual([
      'records.delete',
      'records.delete',
      'records.insert',
      'records.insert',
      'records.insert',
    ])
    expect(await actionsOf({ actor, target: `${posts}/s` })).toEqual(['records.delete', 'records.delete'])
    expect(await actionsOf({ actor, from, to, action: 'records.delete' })).toEqual(['records.delete'])
    expect(await actionsOf({ actor: 'admin:none' })).toEqual([])
    const pages: string[] = []
    let cursor: string | undefined
    do {
      const page = await list(owner.client, { actor, action: 'records.', limit: 2, cursor })
      pages.push(...page.items.map(({ id }: AuditItem) => id))
      cursor = page.cursor ?? undefined
    } while (cursor !== undefined)
    expect(new Set(pages).size).toBe(5)
    const unfiltered = await list(owner.client, { limit: 3 })
    expect(unfiltered.items).toHaveLength(3)
    expectRefusal(await owner.client.get(`/api/audit${query({ actor, cursor: unfiltered.cursor })}`), 400)
    expectRefusal(await owner.client.get('/api/audit?from=yesterday'), 400)
    const support = await openAdministrator(server, 'support')
    expect((await support.client.get('/api/audit')).status).toBe(200)
    expectRefusal(await support.client.get('/api/audit/export'), 403)
    clock.advance(11 * 60 * 1000)
    expect(expectRefusal(await owner.client.get('/api/audit/export'), 403).slug).toBe('sign-in-again')
  })

  test('[DASH-20] hashes of entries form a chain that anyone with an export can verify', async () => {
    await server.service.post(posts, { title: 'x' })
    const entries = await entriesOf(server)
    let previous = ''
    for (const { hash, at, ...entry } of entries) {
      const { id, ...rest } = entry
      const text = JSON.stringify({ id, at: Date.parse(at), ...rest })
      expect(sha256(`${previous}\n${text}`)).toBe(hash)
      previous = hash
    }
    const noted = entries[3]?.hash ?? ''
    expect(await verify(server, noted)).toMatchObject({
      ok: true,
      contains: true,
      hash: previous,
      entries: entries.length,
    })
    expect(await verify(server, 'f'.repeat(64))).toMatchObject({ ok: false, contains: false, broken: null })
  })

  test('[DASH-2] the log is not writable', async () => {
    const owner = await openAdministrator(server, 'owner')
    const page = pageClient(server, { ...pageHeaders(server), cookie: owner.cookie })
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect([404, 405]).toContain((await page.request(method, '/api/audit', { body: {} })).status)
  })
})
