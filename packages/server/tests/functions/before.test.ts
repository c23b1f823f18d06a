/** Hooks before writes of a real server: on every endpoint that changes rows, in room code and in functions. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Room } from '../../src/config/define.ts'
import { open } from '../harness/config.ts'
import { join as joinRoom, newRoomId } from '../harness/rooms/rooms.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const project = mkdtempSync(join(tmpdir(), 'plinth-before-'))
afterAll(() => rmSync(project, { recursive: true, force: true }))
mkdirSync(join(project, 'functions'))
writeFileSync(
  join(project, 'functions', 'index.ts'),
  `import { functionsFor, HttpError } from 'plinth/functions'
const { before, rpc } = functionsFor()

const mark = async ({ operation, row, caller }, ctx) => {
  const [, deletes, wish] = /^(deletes: )?(.*)$/.exec(row.title)
  const act = deletes === undefined || operation === 'delete' ? wish : ''
  if (act === 'refuse') throw new HttpError(422, 'refused', 'Refused', { row: act })
  if (act === 'throw') throw new TypeError('broken')
  if (act === 'exit') process.exit(1)
  if (act === 'loop') await ctx.service.db('shared').posts.insert({ title: 'loop' })
  return { ...row, seen: (row.seen ?? 0) + 1, by: operation + ' by ' + caller.kind, secret: 'by hook' }
}
export const marks = before('shared.posts', ['insert', 'update', 'delete'], mark)
export const tenants = before('workspace.docs', ['insert'], ({ row }) => ({ ...row, title: row.title + '!' }))
export const write = rpc({ caller: 'anyone' }, async ({ title, as }, ctx) =>
  (as === 'service' ? ctx.service.db('shared') : ctx.db('shared')).posts.insert({ title }))
`,
)

const schema = {
  title: { type: 'string' },
  seen: { type: 'number' },
  by: { type: 'string' },
  secret: { type: 'string' },
} as const
const config = {
  databases: {
    shared: {
      tables: { posts: { schema, hidden: ['secret'], access: open }, notes: { schema: {}, access: open } },
    },
    workspace: {
      instance: true,
      access: () => true,
      tables: { docs: { schema: { title: { type: 'string' } }, access: open } },
    },
  },
  rooms: {
    lobby: {
      access: { join: () => true },
      actions: {
        async insert(room: Room, _: unknown, title: string) {
          return (await room.db('shared').table('posts').insert({ title })) as object
        },
      },
    },
  },
}

const base = '/api/db/shared/tables/posts'

interface Path {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: (title: string) => unknown
  /** Whether it deletes the row `p2`, whose title says what the hook does then. */
  readonly isDelete?: true
  /** Whether it requires a service key. */
  readonly isForKeys?: true
}

/** A request for each endpoint that changes rows of a table, by its name. */
const paths: Readonly<Record<string, readonly Path[]>> = {
  'records.insert': [
    { method: 'POST', path: base, body: (title) => ({ title }) },
    { method: 'POST', path: `${base}?upsert=true`, body: (title) => ({ id: 'p1', title }) },
    { method: 'POST', path: `${base}?upsert=true`, body: (title) => ({ id: 'p9', title }) },
  ],
  'records.update': [{ method: 'PATCH', path: `${base}/p1`, body: (title) => ({ title }) }],
  'records.delete': [{ method: 'DELETE', path: `${base}/p2`, isDelete: true }],
  'records.batch': [
    { method: 'POST', path: `${base}/batch`, body: (title) => ({ inserts: [{ title }] }) },
    { method: 'POST', path: `${base}/batch`, body: (title) => ({ updates: [{ id: 'p1', data: { title } }] }) },
    { method: 'POST', path: `${base}/batch`, body: () => ({ deletes: ['p2'] }), isDelete: true },
  ],
  'records.batchByFilter': [
    {
      method: 'POST',
      path: `${base}/batch-by-filter`,
      body: (title) => ({ action: 'update', filter: [['id', '==', 'p1']], data: { title } }),
    },
    {
      method: 'POST',
      path: `${base}/batch-by-filter`,
      body: () => ({ action: 'delete', filter: [['id', '==', 'p2']] }),
      isDelete: true,
    },
  ],
  'records.import': [
    {
      method: 'POST',
      path: `${base}/batch/import`,
      body: (title) => ({ inserts: [{ title }] }),
      isForKeys: true,
    },
  ],
  'records.transaction': [
    {
      method: 'POST',
      path: '/api/db/shared/transaction',
      body: (title) => ({
        operations: [
          { table: 'notes', insert: {} },
          { table: 'posts', insert: { title } },
        ],
      }),
    },
    {
      method: 'POST',
      path: '/api/db/shared/transaction',
      body: () => ({ operations: [{ table: 'posts', delete: { id: 'p2' } }] }),
      isDelete: true,
    },
  ],
}

/** Endpoints under `/api/db` that change no row. */
const withoutRows: ReadonlySet<string> = new Set(['subscriptions.broadcast'])

describeServer('before', { config, settings: { projectFolder: project } }, (server) => {
  const send = ({ method, path, body }: Path, title: string, client = server.service) =>
    client.request(method, path, body ? { body: body(title) } : undefined)
  const reset = async (): Promise<void> => {
    await clear(server)
    const inserts = [
      { id: 'p1', title: 'one' },
      { id: 'p2', title: 'two' },
    ]
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
  }
  const dump = () => server.dump(base, '/api/db/shared/tables/notes')

  test('[FN-BEFORE-1] every endpoint that changes rows is tested here', () => {
    const found = server
      .endpoints()
      .filter(({ method, paths }) => method !== 'GET' && paths.some((path) => path.startsWith('/api/db')))
      .map(({ name }) => name)
    expect(found.filter((name) => !withoutRows.has(name)).sort()).toEqual(Object.keys(paths).sort())
  })

  const all = Object.entries(paths).flatMap(([name, some]) => some.map((path, at) => [name, at, path] as const))
  describe.each(all)('%s %i', (_, __, path) => {
    test('[FN-BEFORE-1] the hook runs for a user without credentials and for a service key', async () => {
      const callers = [
        [server.service, 'service'],
        [server.anonymous, 'anonymous'],
      ] as const
      for (const [client, kind] of path.isForKeys ? callers.slice(0, 1) : callers) {
        await reset()
        expect((await send(path, 'new', client)).status).toBeOneOf([200, 201])
        const { items } = (await dump())[base] as { items: readonly Record<string, unknown>[] }
        if (path.isDelete) expect(items.map(({ id }) => id)).toEqual(['p1'])
        else {
          const [written] = items.filter(({ title }) => title === 'new')
          expect(written?.by).toMatch(new RegExp(`^(insert|update) by ${kind}$`))
          expect(written?.secret).toBe('by hook')
        }
      }
    })

    test.each([
      ['refuse', 422, 'refused'],
      ['throw', 500, 'hook-failed'],
    ])('[FN-BEFORE-2, FN-BEFORE-5] a hook that does "%s" leaves nothing stored', async (title, status, slug) => {
      await reset()
      if (path.isDelete)
        expect((await server.service.patch(`${base}/p2`, { title: `deletes: ${title}` })).status).toBe(200)
      const before = await dump()
      const { status: code, body } = await send(path, title)
      expect([code, body.slug]).toEqual([status, slug])
      if (slug === 'refused') expect(body).toMatchObject({ message: 'Refused', data: { row: 'refuse' } })
      expect(await dump()).toEqual(before)
    })
  })

  test('[FN-BEFORE-5] a hook that ends its process leaves nothing stored', async () => {
    await reset()
    const before = await dump()
    const { status, body, headers } = await server.service.post(`${base}/batch`, { inserts: [{}, { title: 'exit' }] })
    expect([status, body.slug, headers.get('retry-after')]).toEqual([503, 'unavailable', '1'])
    expect(await dump()).toEqual(before)
  })

  test('[FN-BEFORE-1] hooks run in instances', async () => {
    const path = '/api/db/workspace/w1/tables/docs'
    expect((await server.anonymous.post(path, { title: 'a' })).body.title).toBe('a!')
  })

  test('[FN-BEFORE-1] hooks run for room code, as a service caller', async () => {
    const ann = await joinRoom(server, 'ann', { namespace: 'lobby', id: newRoomId() })
    expect(await ann.act('insert', 'by room')).toMatchObject({ result: { by: 'insert by service' } })
    expect(await ann.act('insert', 'refuse')).toMatchObject({ type: 'action_error' })
    await ann.close()
  })

  test('[FN-BEFORE-1] hooks run for functions, with their caller', async () => {
    const call = (body: object) => server.anonymous.post('/api/fn/write', body)
    expect((await call({ title: 'a' })).body).toMatchObject({ by: 'insert by anonymous' })
    expect((await call({ title: 'a', as: 'service' })).body).toMatchObject({ by: 'insert by service' })
  })

  test('[FN-BEFORE-9] a hook that causes itself ends', async () => {
    await reset()
    const before = await dump()
    expect((await server.service.post(base, { title: 'loop' })).body.slug).toBe('hook-failed')
    expect(await dump()).toEqual(before)
  })

  test('[FN-BEFORE-12] 100 increments of one row at once all succeed', async () => {
    await reset()
    const increment = () => server.service.patch(`${base}/p1`, { seen: { $op: 'increment', value: 1 } })
    const answers = await Promise.all(Array.from({ length: 100 }, increment))
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200))
    // The hook adds one more each time; the insert has added the first.
    expect((await server.service.get(`${base}/p1`)).body.seen).toBe(201)
  })

  test('[FN-BEFORE-10] the time of hooks is a metric', async () => {
    const { text } = await server.service.get('/metrics')
    expect(text).toContain('functions_before_seconds_count{table="shared.posts"}')
  })
})

/** Removes all rows; the hook refuses none of them once their titles are gone. */
async function clear(server: TestServer): Promise<void> {
  await server.service.post(`${base}/batch-by-filter`, { action: 'update', data: { title: 'old' } })
  for (const table of ['posts', 'notes'])
    expect(
      (await server.service.post(`/api/db/shared/tables/${table}/batch-by-filter`, { action: 'delete' })).status,
    ).toBe(200)
}
