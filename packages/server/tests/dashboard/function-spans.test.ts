/** Functions in the path of a request: hooks before writes, and functions that a client calls. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'

const project = openFunctionProject(`
export const slugs = before('shared.posts', ['insert'], ({ row }) => {
  if (row.title === 'refused') throw new HttpError(409, 'taken', 'Taken')
  return { ...row, slug: row.title.toLowerCase() }
})
export const stamps = before('shared.posts', ['insert'], ({ row }) => ({ ...row, stamp: 'x' }))
export const publish = rpc({ caller: 'anyone' }, async (title, ctx) => (await ctx.service.db('shared').posts.insert({ title })).id)
export const breaks = rpc({ caller: 'anyone' }, () => { throw new Error('broken') })
`)
afterAll(project.remove)

const text = { type: 'string' } as const
const access = { read: true, insert: true } as const
const config = {
  databases: { shared: { tables: { posts: { schema: { title: text, slug: text, stamp: text }, access } } } },
} as const

interface Span {
  readonly kind: string
  readonly label: string
  readonly startMs: number
  readonly ms: number
  readonly waitMs: number | null
  readonly isFailed: boolean
}

describeServer('functions in paths of requests', { config, settings: { projectFolder: project.folder } }, (server) => {
  let owner: TestAdministrator
  beforeAll(async () => {
    owner = await openAdministrator(server, 'owner')
  })
  const spansOf = async (answer: { headers: Headers }): Promise<readonly Span[]> => {
    const { status, body } = await owner.client.get(`/api/requests/${answer.headers.get('x-request-id')}`)
    expect(status).toBe(200)
    return body.trace.spans
  }
  const functionsOf = (spans: readonly Span[]) => spans.filter(({ kind }) => kind === 'function')
  /** The wait is a part of the time. */
  const expectWaits = (spans: readonly Span[]): void => {
    for (const { ms, waitMs } of spans) {
      expect(waitMs).toBeGreaterThanOrEqual(0)
      expect(ms).toBeGreaterThanOrEqual(waitMs ?? 0)
    }
  }

  test('[DASH-27] a write has the hooks before it, by name, with their time and their wait for a host', async () => {
    const stored = await server.anonymous.post('/api/db/shared/tables/posts', { title: 'First' })
    expect(stored.body).toMatchObject({ slug: 'first', stamp: 'x' })
    const spans = await spansOf(stored)
    const hooks = functionsOf(spans)
    expect(hooks).toMatchObject([{ label: 'slugs, stamps', rows: null, isFailed: false }])
    expectWaits(hooks)
    // The hooks run before the write waits for the writer.
    const queue = spans.find(({ kind }) => kind === 'queue')
    expect(queue?.startMs).toBeGreaterThanOrEqual((hooks[0]?.startMs ?? 0) + (hooks[0]?.ms ?? 0))
    for (const span of spans) if (span.kind !== 'function') expect(span.waitMs).toBeNull()
  })

  test('[DASH-27] a hook that refuses has run', async () => {
    const refused = await server.anonymous.post('/api/db/shared/tables/posts', { title: 'refused' })
    expect(refused.status).toBe(409)
    expect(functionsOf(await spansOf(refused))).toHaveLength(1)
  })

  test('[DASH-27] a call has the function, and what the function does in its name', async () => {
    const called = await server.anonymous.post('/api/fn/publish', 'Second')
    expect(called.status).toBe(200)
    const spans = await spansOf(called)
    const functions = functionsOf(spans)
    expectWaits(functions)
    expect(functions.map(({ label }) => label).toSorted()).toEqual(['publish', 'slugs, stamps'])
    const [outer, inner] = [functions.find(({ label }) => label === 'publish'), functions[0]]
    expect(inner?.startMs).toBeGreaterThanOrEqual(outer?.startMs ?? 0)
    expect(spans.some(({ kind, label }) => kind === 'statement' && label.startsWith('INSERT'))).toBe(true)
  })

  test('[DASH-27] a function that fails says so', async () => {
    const failed = await server.anonymous.post('/api/fn/breaks', null)
    expect(failed.status).toBe(500)
    expect(functionsOf(await spansOf(failed))).toMatchObject([{ label: 'breaks', isFailed: true }])
  })
})
