/** Replays under an `Idempotency-Key` after the caller has lost read access. */
import { beforeEach, expect, test } from 'bun:test'
import { exists, field } from '../../../src/config/define.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const tables = '/api/db/shared/tables'
const [posts, notes, teams, members] = ['posts', 'notes', 'teams', 'members'].map((name) => `${tables}/${name}`) as [
  string,
  string,
  string,
  string,
]
const schema = {
  title: { type: 'string' },
  slug: { type: 'string', unique: true },
  views: { type: 'number', default: 7 },
  kind: { type: 'string', default: 'draft' },
} as const
const writeScope = ['db:table:*:write']
const bothScopes = [...writeScope, 'db:table:*:read']
const serviceKey = 'key-of-writer-0123456789'

/** `scopes` apply to the key; the other options apply to `posts`. */
const configOf = ({ scopes = bothScopes, access = open as object, hidden = [] as string[] } = {}) => ({
  databases: {
    shared: {
      tables: {
        posts: { schema, access, hidden },
        notes: { access: open },
        members: { schema: { team: { type: 'string' }, user: { type: 'string' } } },
        teams: {
          schema: { team: { type: 'string' }, note: { type: 'string', default: 'by default' } },
          access: {
            read: (auth: { id: string } | null) => auth && exists('members', { user: auth.id, team: field('team') }),
            insert: true,
          },
        },
      },
    },
  },
  serviceKeys: [{ name: 'writer', key: serviceKey, scopes }],
})

const builtIn = ['createdAt', 'id', 'updatedAt']
const andBuiltIn = (...fields: string[]): string[] => [...builtIn, ...fields].sort()
const namesOf = (record: object): string[] => Object.keys(record).sort()
const everything = andBuiltIn('kind', 'slug', 'title', 'views')

describeServer('replays', { config: configOf() }, (server) => {
  const writer = server.withKey(serviceKey)
  const alice = server.as('alice')
  let keys = 0

  /** A request that can be repeated unchanged. */
  function repeatable(client: typeof alice, method: 'post' | 'patch', path: string, body: object) {
    const headers = { 'idempotency-key': `replay-${++keys}` }
    return () => client[method](path, body, headers)
  }

  beforeEach(async () => {
    await server.reload(configOf())
    for (const table of [posts, members]) await server.service.post(`${table}/batch-by-filter`, { action: 'delete' })
    expect((await server.service.post(posts, { id: 'a', title: 'A', slug: 'slug-a', views: 41 })).status).toBe(201)
  })

  /** Every kind of write that returns records, with the fields that it sends, by list and position. */
  const writes = (client: typeof alice) => [
    { send: repeatable(client, 'post', posts, { title: 'B' }), shown: [andBuiltIn('title')] },
    { send: repeatable(client, 'patch', `${posts}/a`, { title: 'A2' }), shown: [andBuiltIn('title')] },
    {
      send: repeatable(client, 'patch', `${posts}/a`, { views: { $op: 'increment', value: 1 } }),
      shown: [builtIn],
    },
    {
      send: repeatable(client, 'post', `${posts}?upsert=true`, { id: 'a', kind: 'k' }),
      shown: [['action', ...andBuiltIn('kind')].sort()],
      action: 'updated',
    },
    {
      send: repeatable(client, 'post', `${posts}?upsert=true`, { id: 'new', title: 'N' }),
      shown: [['action', ...andBuiltIn('title')].sort()],
      action: 'inserted',
    },
    {
      send: repeatable(client, 'post', `${posts}/batch`, {
        inserts: [{ title: 'C' }, { slug: 'slug-d', kind: 'D' }],
        updates: [{ id: 'a', data: { kind: 'E', views: { $op: 'increment', value: 1 } } }],
      }),
      shown: [andBuiltIn('title'), andBuiltIn('kind', 'slug'), andBuiltIn('kind')],
    },
    {
      send: repeatable(client, 'post', `${posts}/batch?upsert=true`, { inserts: [{ id: 'a', title: 'F' }] }),
      shown: [andBuiltIn('title')],
    },
  ]

  const recordsOf = (body: { inserted?: object[]; updated?: object[] }): object[] =>
    body.inserted ? [...body.inserted, ...(body.updated ?? [])] : [body]

  async function expectReduced(client: typeof alice, next: ReturnType<typeof configOf>): Promise<void> {
    const sent = writes(client)
    const firsts = []
    for (const { send } of sent) {
      const first = await send()
      expect(first.status).toBeLessThan(300)
      const again = await send()
      expect(again.status).toEqual(first.status)
      expect(again.text).toEqual(first.text)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      firsts.push(first)
    }
    await server.reload(next)
    for (const [at, { send, shown, action }] of sent.entries()) {
      const first = firsts[at]
      const again = await send()
      expect(again.status).toEqual(first?.status as number)
      expect(again.headers.get('etag')).toBeNull()
      expect(recordsOf(again.body).map(namesOf)).toEqual(shown)
      expect(again.body.action).toBe(action)
      const ids = (body: object) => recordsOf(body).map((record) => (record as { id: string }).id)
      expect(ids(again.body)).toEqual(ids(first?.body))
      expect(recordsOf(first?.body)).toMatchObject(recordsOf(again.body))
    }
  }

  test('[DB-IDEM-9, KEY-14] a key that lost its read scope gets the ids and the sent fields', () =>
    expectReduced(writer, configOf({ scopes: writeScope })))

  test('[DB-IDEM-9, RULE-17] a user who lost read access gets the ids and the sent fields', () =>
    expectReduced(alice, configOf({ access: { ...open, read: () => ({ kind: 'public' }) } })))

  test('[DB-IDEM-9] a record that has become unreadable or was deleted is reduced to the sent fields', async () => {
    await server.reload(configOf({ access: { ...open, read: () => ({ kind: 'draft' }) } }))
    const insert = repeatable(alice, 'post', posts, { title: 'moved' })
    const batch = repeatable(alice, 'post', `${posts}/batch`, { inserts: [{ title: 'one' }, { title: 'two' }] })
    const [first, both] = [await insert(), await batch()]
    expect(namesOf(first.body)).toEqual(everything)
    expect(both.body.inserted.map(namesOf)).toEqual([everything, everything])
    await server.service.patch(`${posts}/${first.body.id}`, { kind: 'secret', views: 99 })
    await server.service.delete(`${posts}/${both.body.inserted[1].id}`)
    const { id, title, createdAt, updatedAt } = first.body
    expect((await insert()).body).toEqual({ id, title, createdAt, updatedAt })
    const again = await batch()
    expect(again.body.inserted[0]).toEqual(both.body.inserted[0])
    expect(namesOf(again.body.inserted[1])).toEqual(andBuiltIn('title'))
    await server.service.patch(`${posts}/${id}`, { kind: 'draft' })
    expect((await insert()).text).toBe(first.text)
  })

  test('[DB-IDEM-9] a read rule on another table applies to the replay', async () => {
    const { body: member } = await server.service.post(members, { team: 'red', user: 'alice' })
    const insert = repeatable(alice, 'post', teams, { team: 'red' })
    const first = await insert()
    expect(first.body.note).toBe('by default')
    expect((await insert()).text).toBe(first.text)
    await server.service.delete(`${members}/${member.id}`)
    expect(namesOf((await insert()).body)).toEqual(andBuiltIn('team'))
  })

  test('[DB-IDEM-9] a field that has become hidden is removed from the replay and from stored errors', async () => {
    const insert = repeatable(alice, 'post', posts, { title: 'visible' })
    const patch = repeatable(alice, 'patch', `${posts}/a`, { title: 'A3' })
    const taken = repeatable(writer, 'post', posts, { slug: 'slug-a' })
    for (const send of [insert, patch]) expect(namesOf((await send()).body)).toEqual(everything)
    expect(Object.keys(expectRefusal(await taken(), 409).data ?? {})).toEqual(['slug'])
    await server.reload(configOf({ hidden: ['views', 'slug'], scopes: writeScope }))
    for (const send of [insert, patch]) expect(namesOf((await send()).body)).toEqual(andBuiltIn('kind', 'title'))
    expect(expectRefusal(await taken(), 409).data).toEqual({})
  })

  test('[DB-IDEM-9, KEY-15] a replay of a write by filter requires read access to the fields of the filter', async () => {
    const byField = repeatable(writer, 'post', `${posts}/batch-by-filter`, {
      action: 'update',
      filter: [['views', '==', 41]],
      data: { kind: 'found' },
    })
    const byId = repeatable(writer, 'post', `${posts}/batch-by-filter`, {
      action: 'update',
      filter: [['id', '==', 'a']],
      data: { kind: 'found' },
    })
    for (const send of [byField, byId]) expect((await send()).body).toEqual({ processed: 1, succeeded: 1 })
    await server.reload(configOf({ scopes: writeScope }))
    expectRefusal(await byField(), 403)
    expect((await byId()).body).toEqual({ processed: 1, succeeded: 1 })
  })

  test('[DB-IDEM-9] fields named action or abridged of schemaless records are preserved', async () => {
    const sent = { action: 'mine', abridged: true }
    const upsert = repeatable(writer, 'post', `${notes}?upsert=true`, { id: 'n', ...sent })
    const touch = repeatable(writer, 'post', `${notes}?upsert=true`, { id: 'n', more: 1 })
    const [first, touched] = [await upsert(), await touch()]
    expect(first.body).toMatchObject(sent)
    expect(touched.body).toMatchObject({ ...sent, more: 1 })
    expect((await upsert()).text).toEqual(first.text)
    expect((await touch()).text).toEqual(touched.text)
    await server.reload(configOf({ scopes: writeScope }))
    expect((await upsert()).body).toMatchObject(sent)
    expect(namesOf((await touch()).body)).toEqual(['action', ...andBuiltIn('more')].sort())
    expect((await touch()).body.action).toBe('updated')
  })

  test('[DB-IDEM-8, DB-IDEM-9] an abridged response still contains only ids', async () => {
    const large = { title: 'x'.repeat(70_000) }
    const insert = repeatable(writer, 'post', posts, large)
    const batch = repeatable(writer, 'post', `${posts}/batch`, { inserts: [large] })
    const [first, both] = [await insert(), await batch()]
    await server.reload(configOf({ scopes: writeScope }))
    expect((await insert()).body).toEqual({ abridged: true, id: first.body.id })
    const inserted = [{ id: both.body.inserted[0].id }]
    expect((await batch()).body).toEqual({ abridged: true, inserted, updated: [], deleted: [] })
  })
})
