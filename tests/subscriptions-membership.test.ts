/**
 * Subscriptions under a rule with `exists` follow the tables that the rule reads: rows appear when access is gained,
 * leave when it is lost, at every node, and coming back tells nothing from before access was gained.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { and, exists, field, not, or } from '../src/access/filter.ts'
import { open } from './harness/config.ts'
import { sharedEngine } from './harness/engines.ts'
import { applyChanges, changesIn, watch } from './harness/live.ts'
import { openNodes } from './harness/nodes.ts'
import { describeServer, type TestServer } from './harness/server.ts'
import { type Message, openSocket, type TestSocket } from './harness/socket.ts'

const table = (name: string): string => `/api/db/shared/tables/${name}`
const channel = 'dblive:shared:docs'
const text = { type: 'string' } as const

type Auth = { readonly id: string; readonly custom: Readonly<Record<string, unknown>> } | null

const config = {
  databases: {
    shared: {
      tables: {
        docs: {
          schema: { teamId: text, title: text, isOpen: { type: 'boolean' } },
          access: {
            ...open,
            read: (auth: Auth) =>
              auth !== null &&
              or(
                { isOpen: true },
                and(
                  exists('members', { userId: auth.id, teamId: field('teamId') }),
                  not(exists('bans', { userId: auth.id })),
                ),
              ),
          },
        },
        claimed: {
          schema: { teamId: text, title: text },
          access: { ...open, read: (auth: Auth) => ({ teamId: String(auth?.custom.team ?? '') }) },
        },
        tasks: {
          schema: { docId: text },
          access: {
            ...open,
            read: (auth: Auth) =>
              auth !== null &&
              exists(
                'docs',
                and({ id: field('docId') }, exists('members', { userId: auth.id, teamId: field('teamId') })),
              ),
          },
        },
        members: { schema: { userId: text, teamId: text }, access: open },
        bans: { schema: { userId: text }, access: open },
        marks: { schema: {}, access: open },
      },
    },
  },
}

let marks = 0

/** Everything that a socket is told up to now, by a change of another table that comes last. */
async function told(server: TestServer, socket: TestSocket): Promise<Message[]> {
  const id = `mark${++marks}`
  socket.send({ type: 'subscribe', channel: `dblive:shared:marks:${id}` })
  const before = await socket.until(({ type, channel }) => type === 'subscribed' && channel.endsWith(id))
  await server.service.post(table('marks'), { id })
  const after = await socket.until(({ docId }) => docId === id)
  return [...before.slice(0, -1), ...after.slice(0, -1)]
}

const namesOf = (messages: readonly Message[]) =>
  changesIn(messages).map(({ changeType, docId }) => [changeType, docId])

async function clear(server: TestServer): Promise<void> {
  for (const name of ['docs', 'tasks', 'members', 'bans', 'claimed'])
    for (;;) {
      const { body } = await server.service.post(`${table(name)}/batch-by-filter`, { action: 'delete' })
      if (body.processed < 500) break
    }
}

describeServer('membership', { config }, (server) => {
  const put = (name: string, row: object) => server.service.post(`${table(name)}?upsert=true`, row)
  const watchAs = async (id: string, more: object = {}) =>
    watch(server.url, { channel, token: await server.token(id), ...more })

  test('[SUB-80] rows appear when access is gained and leave when it is lost', async () => {
    await clear(server)
    for (const id of ['r1', 'r2']) await put('docs', { id, teamId: 'red', title: id })
    await put('docs', { id: 'b1', teamId: 'blue', title: 'b1' })
    await put('docs', { id: 'o1', teamId: 'red', title: 'o1', isOpen: true })
    const socket = await watchAs('ann')
    await put('members', { id: 'm1', userId: 'ann', teamId: 'red' })
    const gained = await told(server, socket)
    expect(namesOf(gained).sort()).toEqual([
      ['added', 'r1'],
      ['added', 'r2'],
    ])
    expect(changesIn(gained)[0]?.data).toMatchObject({ teamId: 'red', title: expect.any(String) })
    // Another membership of the same team, and another user's, change nothing.
    await put('members', { id: 'm2', userId: 'ann', teamId: 'red' })
    await put('members', { id: 'm3', userId: 'bob', teamId: 'blue' })
    await server.service.delete(`${table('members')}/m2`)
    expect(namesOf(await told(server, socket))).toEqual([])
    await server.service.patch(`${table('members')}/m1`, { teamId: 'blue' })
    expect(namesOf(await told(server, socket)).sort()).toEqual([
      ['added', 'b1'],
      ['removed', 'r1'],
      ['removed', 'r2'],
    ])
    await put('bans', { id: 'x', userId: 'ann' })
    expect(namesOf(await told(server, socket))).toEqual([['removed', 'b1']])
    await server.service.delete(`${table('bans')}/x`)
    expect(namesOf(await told(server, socket))).toEqual([['added', 'b1']])
    await server.service.delete(`${table('members')}/m1`)
    const [removed] = changesIn(await told(server, socket))
    expect(removed).toMatchObject({ changeType: 'removed', docId: 'b1', data: null })
    await socket.close()
  })

  test('[SUB-80] by batches, by filters, and beside changes of the rows themselves', async () => {
    await clear(server)
    const inserts = Array.from({ length: 20 }, (_, n) => ({ id: `d${n}`, teamId: `t${n % 4}`, title: 'x' }))
    await server.service.post(`${table('docs')}/batch`, { inserts })
    const socket = await watchAs('ann', { subscribe: { filters: [['title', '==', 'x']] } })
    const members = ['t0', 't1', 't2'].map((teamId) => ({ id: teamId, userId: 'ann', teamId }))
    await server.service.post(`${table('members')}/batch`, { inserts: members })
    const view = new Map<string, Message>()
    const gained = await told(server, socket)
    expect(gained[0]?.type).toBe('batch_changes')
    applyChanges(view, gained)
    expect([...view.keys()].sort()).toEqual(
      inserts
        .filter(({ teamId }) => teamId !== 't3')
        .map(({ id }) => id)
        .sort(),
    )
    await server.service.post(`${table('members')}/batch-by-filter`, {
      action: 'delete',
      filter: [['teamId', 'in', ['t0', 't1']]],
    })
    await server.service.patch(`${table('docs')}/d0`, { teamId: 't2' })
    await server.service.patch(`${table('docs')}/d2`, { teamId: 't0' })
    applyChanges(view, await told(server, socket))
    const { body } = await server.as('ann').get(`${table('docs')}?limit=1000`)
    expect([...view.keys()].sort()).toEqual(body.items.map(({ id }: Message) => id).sort())
    await socket.close()
  })

  test('[SUB-80] a rule that reads one table through another follows both', async () => {
    await clear(server)
    await put('docs', { id: 'd', teamId: 'red' })
    await put('tasks', { id: 't', docId: 'd' })
    const tasks = 'dblive:shared:tasks'
    const socket = await watch(server.url, { channel: tasks, token: await server.token('ann') })
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    expect(namesOf(await told(server, socket))).toEqual([['added', 't']])
    await server.service.patch(`${table('docs')}/d`, { teamId: 'blue' })
    expect(namesOf(await told(server, socket))).toEqual([['removed', 't']])
    await server.service.patch(`${table('members')}/m`, { teamId: 'blue' })
    expect(namesOf(await told(server, socket))).toEqual([['added', 't']])
    await server.service.delete(`${table('docs')}/d`)
    expect(namesOf(await told(server, socket))).toEqual([['removed', 't']])
    await socket.close()
  })

  test('[SUB-81] more than 1,000 rows are told as resync, after which changes go on', async () => {
    await clear(server)
    for (let start = 0; start < 1200; start += 300)
      await server.service.post(`${table('docs')}/batch`, {
        inserts: Array.from({ length: 300 }, (_, n) => ({ id: `d${start + n}`, teamId: 'big' })),
      })
    const socket = await watchAs('ann')
    await put('members', { id: 'm', userId: 'ann', teamId: 'big' })
    expect(await socket.next()).toEqual({ type: 'resync', channel, cursor: expect.any(String) })
    await server.service.patch(`${table('docs')}/d7`, { title: 'after' })
    expect(await socket.next()).toMatchObject({ type: 'db_change', changeType: 'modified', docId: 'd7' })
    await server.service.delete(`${table('members')}/m`)
    expect(await socket.next()).toMatchObject({ type: 'resync', channel })
    await socket.close()
  })

  test('[SUB-82] coming back tells rows as they are, and nothing from before access was gained', async () => {
    await clear(server)
    await put('members', { id: 'own', userId: 'ann', teamId: 'red' })
    await put('docs', { id: 'gone', teamId: 'red' })
    await put('docs', { id: 'kept', teamId: 'red', title: 'first' })
    await put('docs', { id: 'ghost', teamId: 'blue', title: 'secret ghost' })
    await put('docs', { id: 'blue1', teamId: 'blue', title: 'secret old' })
    const { subscribed, close } = await watchAs('ann')
    await close()
    await put('docs', { id: 'blue1', teamId: 'blue', title: 'secret older' })
    await server.service.delete(`${table('docs')}/ghost`)
    await put('docs', { id: 'brief', teamId: 'blue', title: 'secret brief' })
    await server.service.delete(`${table('docs')}/brief`)
    await put('docs', { id: 'blue1', teamId: 'blue', title: 'now' })
    await put('members', { id: 'gained', userId: 'ann', teamId: 'blue' })
    await put('docs', { id: 'kept', teamId: 'red', title: 'second' })
    await put('docs', { id: 'kept', teamId: 'red', title: 'third' })
    await server.service.delete(`${table('docs')}/gone`)
    const again = await watchAs('ann', { subscribe: { since: subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    const messages = await told(server, again)
    expect(namesOf(messages).sort()).toEqual([
      ['added', 'blue1'],
      ['modified', 'kept'],
      ['removed', 'gone'],
    ])
    expect(JSON.stringify(messages)).not.toContain('secret')
    const view = new Map<string, Message>()
    applyChanges(view, messages)
    expect([view.get('blue1')?.title, view.get('kept')?.title]).toEqual(['now', 'third'])
    await again.close()
  })

  test('[SUB-82] coming back after access was lost removes what was visible, and names nothing else', async () => {
    await clear(server)
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    await put('docs', { id: 'seen', teamId: 'red' })
    const { subscribed, close } = await watchAs('ann')
    await close()
    await server.service.delete(`${table('members')}/m`)
    await put('docs', { id: 'later', teamId: 'red', title: 'secret' })
    await server.service.delete(`${table('docs')}/later`)
    const again = await watchAs('ann', { subscribe: { since: subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    expect(namesOf(await told(server, again))).toEqual([['removed', 'seen']])
    await again.close()
  })

  test('[SUB-83] a cursor that was given under other claims is not recovered', async () => {
    await clear(server)
    const claimed = 'dblive:shared:claimed'
    const watchClaimed = async (team: string, subscribe: Readonly<Record<string, unknown>> = {}) =>
      watch(server.url, { channel: claimed, token: await server.token({ id: 'ann', custom: { team } }), subscribe })
    await put('claimed', { id: 'c', teamId: 'blue', title: 'secret' })
    const { subscribed, close } = await watchClaimed('red')
    await close()
    await server.service.delete(`${table('claimed')}/c`)
    await put('claimed', { id: 'd', teamId: 'blue', title: 'old' })
    await put('claimed', { id: 'd', teamId: 'blue', title: 'new' })
    const other = await watchClaimed('blue', { since: subscribed.cursor })
    expect(other.subscribed.recovered).toBe(false)
    expect(namesOf(await told(server, other))).toEqual([])
    await put('claimed', { id: 'd', teamId: 'blue', title: 'newer' })
    await put('claimed', { id: 'd', teamId: 'blue', title: 'newest' })
    await other.close()
    // Under the same claims rows are told as they are.
    const same = await watchClaimed('blue', { since: other.subscribed.cursor })
    expect(same.subscribed.recovered).toBe(true)
    const messages = await told(server, same)
    expect(namesOf(messages)).toEqual([['modified', 'd']])
    expect(messages[0]?.data.title).toBe('newest')
    await same.close()
  })
})

type Step =
  | { readonly kind: 'doc'; readonly id: string; readonly teamId: string; readonly isOpen: boolean }
  | { readonly kind: 'member' | 'ban'; readonly id: string; readonly userId: string; readonly teamId: string }
  | { readonly kind: 'delete'; readonly table: 'docs' | 'members' | 'bans'; readonly id: string }
  | { readonly kind: 'teams'; readonly of: readonly string[] }
  | { readonly kind: 'leave'; readonly who: number }

const users = ['ann', 'bob']
const teamId = fc.constantFrom('t1', 't2', 't3')
const userId = fc.constantFrom(...users)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('doc' as const),
      id: fc.constantFrom('d1', 'd2', 'd3', 'd4', 'd5', 'd6'),
      teamId,
      isOpen: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('member' as const),
      id: fc.constantFrom('m1', 'm2', 'm3'),
      userId,
      teamId,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('ban' as const), id: fc.constant('x'), userId, teamId }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('delete' as const),
      table: fc.constantFrom('docs' as const, 'members' as const, 'bans' as const),
      id: fc.constantFrom('d1', 'd2', 'd3', 'm1', 'm2', 'm3', 'x'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('teams' as const), of: fc.array(teamId, { maxLength: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('leave' as const), who: fc.nat(1) }) },
)

/** Keeps a view from the messages alone, and holds them to what may be told. */
class Watcher {
  readonly view = new Map<string, Message>()
  private socket: TestSocket | null = null
  private since: string | undefined
  /** Whether the view was listed on this socket, so that it is ahead of the cursor. */
  private hasListed = false
  private mustList = false

  constructor(
    private readonly server: TestServer,
    readonly user: string,
  ) {}

  async open(): Promise<void> {
    const socket = await openSocket(this.server.url, '/api/db/subscribe')
    socket.send({ type: 'auth', token: await this.server.token(this.user) })
    await socket.expect('auth_success')
    socket.send({ type: 'subscribe', channel, ...(this.since === undefined ? {} : { since: this.since }) })
    const subscribed = await socket.expect('subscribed')
    if (this.since !== undefined) expect(subscribed.recovered).toBe(true)
    else if (this.mustList) await this.list()
    this.since = subscribed.cursor
    this.socket = socket
  }

  private async rows(): Promise<Map<string, Message>> {
    const { body } = await this.server.as(this.user).get(`${table('docs')}?limit=1000`)
    return new Map(body.items.map((row: Message) => [row.id, row]))
  }

  private async list(): Promise<void> {
    this.view.clear()
    for (const [id, row] of await this.rows()) this.view.set(id, row)
    this.hasListed = true
  }

  /** Lists where the server asks for it: the tables of the rule changed faster than they could be read. */
  private async apply(messages: readonly Message[]): Promise<void> {
    for (const { cursor } of messages) this.since = cursor
    const resync = messages.findLastIndex(({ type }) => type === 'resync')
    if (resync >= 0) await this.list()
    applyChanges(this.view, messages.slice(resync + 1))
  }

  async leave(): Promise<void> {
    const { socket } = this
    if (!socket) return this.open()
    this.socket = null
    await socket.close()
    await this.apply(socket.waiting.slice(0, Math.ceil(socket.waiting.length / 2)))
    // A list that is ahead of the cursor may hold rows whose removal recovery does not report.
    if (this.hasListed) this.since = undefined
    this.mustList = this.hasListed
    this.hasListed = false
  }

  async compare(): Promise<void> {
    if (!this.socket) await this.open()
    const { socket, server } = this
    if (!socket) return
    await this.apply(await told(server, socket))
    expect(this.view).toEqual(await this.rows())
    await socket.close()
  }
}

async function apply(server: TestServer, step: Step): Promise<void> {
  const put = (name: string, row: object) => server.service.post(`${table(name)}?upsert=true`, row)
  if (step.kind === 'doc') await put('docs', { id: step.id, teamId: step.teamId, isOpen: step.isOpen })
  if (step.kind === 'member') await put('members', { id: step.id, userId: step.userId, teamId: step.teamId })
  if (step.kind === 'ban') await put('bans', { id: step.id, userId: step.userId })
  if (step.kind === 'delete') await server.service.delete(`${table(step.table)}/${step.id}`)
  if (step.kind === 'teams')
    await server.service.post(`${table('members')}/batch-by-filter`, {
      action: 'delete',
      filter: [['teamId', 'in', [...step.of, '']]],
    })
}

async function simulate(nodes: readonly TestServer[], runs: number): Promise<void> {
  const [first] = nodes
  if (!first) throw new Error('there is no node')
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { minLength: 10, maxLength: 40 }), async (steps) => {
      await clear(first)
      const watchers = nodes.flatMap((node) => users.map((user) => new Watcher(node, user)))
      for (const watcher of watchers) await watcher.open()
      const running: Promise<void>[] = []
      for (const [at, [one, waits]] of steps.entries()) {
        if (one.kind === 'leave') await watchers[one.who % watchers.length]?.leave()
        // Some writes overlap others, so that rows are judged while tables that the rule reads move on.
        else running.push(apply(nodes[at % nodes.length] ?? first, one))
        if (waits) await Promise.all(running.splice(0))
      }
      await Promise.all(running)
      for (const watcher of watchers) await watcher.compare()
    }),
    { numRuns: runs },
  )
}

describeServer('membership at random', { config }, (server) => {
  test('[SUB-84] whatever memberships and rows do, a view kept from the messages is the list in the end', async () => {
    await simulate([server], 40)
  })
})

if (sharedEngine)
  test('[SUB-84] the same at several nodes', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, { config })
    try {
      await simulate(nodes, 12)
    } finally {
      await close()
    }
  })
