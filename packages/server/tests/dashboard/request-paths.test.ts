/** The path of one request: what sampled requests keep, who sees it, and what it explains. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { closeAfterEach } from '../harness/closing.ts'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'

type Auth = { id: string } | null
const text = { type: 'string' } as const
const unlimited = { requests: 10_000_000 }
const config = {
  rateLimits: { auth: unlimited, signin: unlimited, global: unlimited, db: unlimited },
  dashboard: { roles: { counter: ['dashboard:requests:*:read'] } },
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: text, authorId: text, draft: { type: 'boolean' }, note: text },
          hidden: ['note'],
          access: {
            read: (auth: Auth) => auth && { authorId: auth.id, draft: false },
            insert: (auth: Auth) => auth && { authorId: auth.id },
            update: false,
          },
        },
      },
    },
    teams: {
      instance: true,
      access: (auth: Auth) => auth !== null,
      tables: { tasks: { schema: { title: text }, access: { read: true, insert: true } } },
    },
  },
} as const

interface Span {
  kind: string
  label: string
  startMs: number
  ms: number
  rows: number | null
}

describeServer('paths of requests', { config }, (server) => {
  const base = '/api/db/shared/tables/posts'
  let owner: TestAdministrator
  beforeAll(async () => {
    owner = await openAdministrator(server, 'owner')
    const posts = [
      { id: 'mine', authorId: 'ann', draft: false },
      { id: 'draft', authorId: 'ann', draft: true, title: 'A secret draft' },
    ]
    expect((await server.service.post(`${base}/batch`, { inserts: posts })).status).toBe(200)
  })

  const pathOf = async (answer: { headers: Headers }, by = owner) => {
    const { status, body } = await by.client.get(`/api/requests/${answer.headers.get('x-request-id')}`)
    expect(status).toBe(200)
    return body
  }
  const statements = (spans: readonly Span[]): readonly Span[] => spans.filter(({ kind }) => kind === 'statement')

  test('[DASH-27] a read has its stages, its statements without values, and the rule for its caller', async () => {
    const { trace, access } = await pathOf(await server.as('ann').get(`${base}/mine?fields=title`))
    expect(trace.stages.map(({ stage }: { stage: string }) => stage)).toEqual([
      'authenticate',
      'validate',
      'handle',
      'respond',
    ])
    for (const { startMs, ms } of trace.stages) expect(startMs + ms).toBeGreaterThanOrEqual(startMs)
    const reads = statements(trace.spans).filter(({ label }) => label.includes('"posts"'))
    expect(reads).toMatchObject([{ rows: 1, isFailed: false }])
    expect(JSON.stringify(trace.spans)).not.toContain('mine')
    expect(trace.rules).toEqual([{ table: 'posts', rule: 'read', text: 'authorId == "ann" and draft == false' }])
    expect(trace).toMatchObject({ requestBytes: 0, responseBytes: expect.any(Number), body: null, dropped: 0 })
    expect(access).toMatchObject({
      question: { namespace: 'shared', table: 'posts', operation: 'get', id: 'mine' },
      explanation: { allowed: true, verdict: 200 },
    })
  })

  test('[DASH-27] a write has its wait for the writer and for the commit, and its body without hidden fields', async () => {
    const body = { title: 'New', authorId: 'ann', draft: false }
    const { trace } = await pathOf(await server.as('ann').post(base, body))
    const kinds = trace.spans.map(({ kind }: Span) => kind)
    expect(kinds).toContain('queue')
    expect(kinds).toContain('commit')
    expect(statements(trace.spans).some(({ label }) => label.startsWith('INSERT'))).toBe(true)
    expect(JSON.parse(trace.body)).toEqual(body)
    expect(trace.rules).toContainEqual({ table: 'posts', rule: 'insert', text: 'authorId == "ann"' })
    const secret = await server.service.post(base, { note: 'for editors', title: 'x' })
    const { trace: masked } = await pathOf(secret)
    expect(JSON.parse(masked.body)).toEqual({ note: '[masked]', title: 'x' })
  })

  test('[DASH-27] a refused request has the clause that decides', async () => {
    const { access, status } = await pathOf(await server.as('ann').get(`${base}/draft`))
    expect(status).toBe(404)
    expect(access.explanation).toMatchObject({
      verdict: 404,
      clauses: [{ path: 'read.and[1]', text: 'draft == false', result: false, values: { draft: true } }],
    })
    const update = await pathOf(await server.as('ann').patch(`${base}/mine`, { title: 'x' }))
    expect(update.access.explanation).toMatchObject({ verdict: 403, clauses: [{ path: 'update.before' }] })
    const foreign = await pathOf(await server.as('bob').post(base, { authorId: 'ann' }))
    expect(foreign.access.explanation).toMatchObject({
      verdict: 403,
      clauses: [{ path: 'insert', values: { authorId: 'ann' } }],
    })
    // A service key passes all rules.
    expect((await pathOf(await server.service.get(base))).access).toBeNull()
  })

  test('[DASH-27] instances, transactions and other endpoints have paths too', async () => {
    const written = await pathOf(await server.as('ann').post('/api/db/teams/red/tables/tasks', { title: 'a' }))
    expect(statements(written.trace.spans).length).toBeGreaterThan(0)
    expect(written.access.question).toMatchObject({ namespace: 'teams', instanceId: 'red', table: 'tasks' })
    const operations = [{ table: 'posts', insert: { authorId: 'ann' } }]
    const transaction = await pathOf(await server.as('ann').post('/api/db/shared/transaction', { operations }))
    expect(transaction).toMatchObject({ endpoint: 'records.transaction', access: null })
    expect(transaction.trace.rules).toContainEqual(expect.objectContaining({ rule: 'insert' }))
  })

  test('[DASH-28] other bodies are kept in their form alone, and secrets of records are masked', async () => {
    const signUp = { email: 'eve@example.com', password: 'a long password of eve', displayName: 'Eve' }
    const { trace } = await pathOf(await server.anonymous.post('/api/auth/signup', signUp))
    // The body was refused, and is what explains the refusal.
    expect(trace.stages.at(-1).stage).toBe('validate')
    expect(JSON.parse(trace.body)).toMatchObject({ email: 'string', password: 'string' })
    expect(JSON.stringify(trace)).not.toContain('eve')
    const large = await pathOf(await server.service.post(base, { title: 'x'.repeat(40_000) }))
    expect(large.trace.body).toBeNull()
  })

  test('[DASH-28] bodies need the scope to read the table, and explanations that to explain', async () => {
    const counter = await openAdministrator(server, 'counter')
    const answer = await server.as('ann').post(base, { title: 'For readers', authorId: 'ann' })
    expect((await pathOf(answer)).trace.body).toContain('For readers')
    const { trace, access } = await pathOf(answer, counter)
    expect(trace.body).toBeNull()
    expect(access).toBeNull()
    expect(trace.spans.length).toBeGreaterThan(0)
  })

  test('the statements of concurrent requests are their own', async () => {
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => server.as('ann').get(`${base}/mine`)),
      ...Array.from({ length: 5 }, (_, at) => server.as('ann').post(base, { title: String(at), authorId: 'ann' })),
    ])
    for (const [at, answer] of answers.entries()) {
      const { trace } = await pathOf(answer)
      const ofPosts = statements(trace.spans).filter(({ label }) => label.includes('"posts"'))
      // The change log looks up the row, so its statement names the table too.
      const inserts = ofPosts.filter(({ label }) => /^INSERT INTO [^(]*"posts"/.test(label))
      if (at < 20) expect([ofPosts.length, inserts.length]).toEqual([1, 0])
      else expect(inserts.length).toBe(1)
    }
  })
})

describe('in release mode', () => {
  const closing = closeAfterEach()

  test('[DASH-29] one of 64 requests is traced, and every one while the list is watched', async () => {
    const release = { ...config, dashboard: { requireMfa: false } }
    const server = closing(await startServer({ config: release, mode: 'release' }), ({ close }) => close())
    const owner = await openAdministrator(server, 'owner')
    const send = () => Promise.all(Array.from({ length: 64 }, () => server.anonymous.get('/api/health')))
    const traced = async (query: string) => {
      const { items } = (await owner.client.get(`/api/requests?endpoint=system.health&${query}`)).body
      return items.slice(0, 64).filter(({ isTraced }: { isTraced: boolean }) => isTraced).length
    }
    await send()
    expect(await traced('limit=64')).toBe(1)
    await traced('watch=1')
    await send()
    expect(await traced('limit=64')).toBe(64)
  })
})

if (sharedEngine)
  describe('several nodes', () => {
    const closing = closeAfterEach()

    test('[DASH-30] each node lists and explains the requests of all, and names the node', async () => {
      const { nodes } = closing(await openNodes(sharedEngine, 2, { config }), ({ close }) => close())
      const [first, second] = nodes as [TestServer, TestServer]
      const owner = await openAdministrator(second, 'owner')
      const answer = await first.as('ann').get('/api/db/shared/tables/posts/none')
      const requestId = answer.headers.get('x-request-id')
      const read = async () => (await owner.client.get('/api/requests?endpoint=records.get')).body
      let listed = await read()
      for (let attempts = 0; attempts < 1000 && listed.nodes.length < 2; attempts++) listed = await read()
      const [own, other] = listed.nodes
      expect(own.id).not.toBe(other.id)
      expect(listed.items).toMatchObject([{ requestId, node: other }])
      const { body } = await owner.client.get(`/api/requests/${requestId}`)
      expect(body).toMatchObject({ requestId, node: other, access: { explanation: { verdict: 404 } } })
      expect(body.trace.spans.length).toBeGreaterThan(0)
      expect((await owner.client.get('/api/requests/none')).status).toBe(404)
    })
  })
