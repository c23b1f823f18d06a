/**
 * Property test: clients list, subscribe and disconnect at any time while rows and memberships change, on one node or
 * several; in the end the copy of each client equals a list.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { applyChanges } from '../harness/records/live.ts'
import { channel, clear, config, receivedMessages, table } from '../harness/records/memberships.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { type Message, openSocket, type TestSocket } from '../harness/socket.ts'

type Step =
  | { readonly kind: 'doc'; readonly id: string; readonly teamId: string; readonly isOpen: boolean }
  | { readonly kind: 'member' | 'ban'; readonly id: string; readonly userId: string; readonly teamId: string }
  | { readonly kind: 'delete'; readonly table: 'docs' | 'members' | 'bans'; readonly id: string }
  | { readonly kind: 'teams'; readonly of: readonly string[] }
  | { readonly kind: 'leave' | 'list'; readonly who: number }

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
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('leave' as const), who: fc.nat(3) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('list' as const), who: fc.nat(3) }) },
)

/** A client that keeps a copy of the table from lists and change messages. */
class Watcher {
  readonly copy = new Map<string, Message>()
  private socket: TestSocket | null = null
  private since: string | undefined

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
    if (this.since !== undefined && !subscribed.recovered) await this.list()
    this.since = subscribed.cursor
    this.socket = socket
  }

  private async rows(): Promise<Map<string, Message>> {
    const { body } = await this.server.as(this.user).get(`${table('docs')}?limit=1000`)
    return new Map(body.items.map((row: Message) => [row.id, row]))
  }

  async list(): Promise<void> {
    this.copy.clear()
    for (const [id, row] of await this.rows()) this.copy.set(id, row)
  }

  /** Lists again on `resync`: the tables of the rule changed faster than the server could read them. */
  private async apply(messages: readonly Message[]): Promise<void> {
    for (const { cursor } of messages) this.since = cursor
    const resync = messages.findLastIndex(({ type }) => type === 'resync')
    if (resync >= 0) await this.list()
    applyChanges(this.copy, messages.slice(resync + 1))
  }

  /** Disconnects with part of what was sent unread, or connects. */
  async leave(): Promise<void> {
    const { socket } = this
    if (!socket) return this.open()
    this.socket = null
    await socket.close()
    await this.apply(socket.waiting.slice(0, Math.ceil(socket.waiting.length / 2)))
  }

  async compare(): Promise<void> {
    if (!this.socket) await this.open()
    const { socket, server } = this
    if (!socket) return
    // What a change of a membership shows and hides is found after that change, so it may follow a later change of
    // another table. A message that is missing never arrives.
    for (let attempt = 0; attempt < 10; attempt++) {
      await this.apply(await receivedMessages(server, socket))
      if (Bun.deepEquals(this.copy, await this.rows())) break
    }
    expect(this.copy).toEqual(await this.rows())
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
  if (!first) throw new Error('no node was given')
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { minLength: 10, maxLength: 40 }), async (steps) => {
      await clear(first)
      const watchers = nodes.flatMap((node) => users.map((user) => new Watcher(node, user)))
      for (const watcher of watchers) await watcher.open()
      const running: Promise<void>[] = []
      for (const [at, [one, waits]] of steps.entries()) {
        const watcher = 'who' in one ? watchers[one.who % watchers.length] : undefined
        if (one.kind === 'leave') await watcher?.leave()
        else if (one.kind === 'list') await watcher?.list()
        // Some writes overlap, so that rules are evaluated while the tables that they read change.
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
  test('[SUB-84] the copies of clients that list and disconnect at any time equal a list after random changes', async () => {
    await simulate([server], 40)
  })
})

if (sharedEngine)
  test('[SUB-84] on several nodes, the copies of clients equal a list after random changes', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, { config })
    try {
      await simulate(nodes, 12)
    } finally {
      await close()
    }
  })
