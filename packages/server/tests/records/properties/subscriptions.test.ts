/**
 * Subscriptions against a model: across writes, filters, disconnects and restarts, a view maintained from the messages
 * alone equals the result of a query with the same filters by the same caller.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { exists, field } from '../../../src/access/filter.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { applyChanges, changesIn, type Watching, watch } from '../../harness/records/live.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import type { Message } from '../../harness/socket.ts'

const rows = '/api/db/shared/tables/rows'
const members = '/api/db/shared/tables/members'
const channel = 'dblive:shared:rows'

const config = {
  databases: {
    shared: {
      tables: {
        rows: {
          schema: {
            n: { type: 'number' },
            label: { type: 'string' },
            ownerId: { type: 'string' },
            isPublic: { type: 'boolean' },
            pin: { type: 'string' },
          },
          hidden: ['pin'],
          access: {
            ...open,
            read: (auth: { id: string; role: string } | null) => {
              if (auth === null) return { isPublic: true }
              if (auth.role === 'admin') return true
              if (auth.role === 'member') return exists('members', { userId: auth.id, label: field('label') })
              return { ownerId: auth.id }
            },
          },
        },
        marks: { schema: {}, access: open },
        members: { schema: { userId: { type: 'string' }, label: { type: 'string' } }, access: open },
      },
    },
  },
}

const ids = ['a', 'b', 'c', 'd', 'e', 'f']
const row = fc.record(
  {
    n: fc.constantFrom(null, 0, 1, 2, 3, 1.5),
    label: fc.constantFrom(null, 'red', 'blue', 'Red', ''),
    ownerId: fc.constantFrom(null, 'ann', 'bob'),
    isPublic: fc.constantFrom(null, true, false),
    pin: fc.constantFrom('1', '2'),
  },
  { requiredKeys: [] },
)
const id = fc.constantFrom(...ids)

type Step =
  | { readonly kind: 'put'; readonly id: string; readonly row: object }
  | { readonly kind: 'delete'; readonly id: string }
  | { readonly kind: 'batch'; readonly rows: readonly { readonly id: string; readonly row: object }[] }
  | { readonly kind: 'leave'; readonly who: number }
  | { readonly kind: 'restart' }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('put' as const), id, row }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), id }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('batch' as const),
      rows: fc.uniqueArray(fc.record({ id: fc.nat(24).map((n) => `m${n}`), row }), {
        minLength: 8,
        maxLength: 15,
        selector: (one) => one.id,
      }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('leave' as const), who: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
)

const condition = fc.oneof(
  fc.tuple(fc.constant('n'), fc.constantFrom('==', '!=', '>', '>=', '<', '<='), fc.constantFrom(0, 1, 2, 1.5)),
  fc.tuple(fc.constant('n'), fc.constantFrom('in', 'not in'), fc.constantFrom([], [1, 2], [0])),
  fc.tuple(fc.constant('label'), fc.constantFrom('==', '!=', 'contains', '<'), fc.constantFrom('red', 'e', '')),
  fc.tuple(fc.constantFrom('n', 'label', 'isPublic'), fc.constantFrom('==', '!='), fc.constant(null)),
  fc.tuple(fc.constant('isPublic'), fc.constantFrom('==', '!='), fc.boolean()),
  fc
    .tuple(fc.constant('id'), fc.constantFrom('==', 'in'), fc.constant('a'))
    .map(([name, op, value]) => [name, op, op === 'in' ? [value, 'b'] : value]),
)
const filters = fc.record({
  filters: fc.option(fc.array(condition, { maxLength: 2 })),
  orFilters: fc.option(fc.array(condition, { maxLength: 3 })),
})
/** Anonymous, two owners, an admin who sees all rows, and a user whose rows depend on a membership. */
const callers = [null, { id: 'ann' }, { id: 'bob' }, { id: 'root', role: 'admin' }, { id: 'mia', role: 'member' }]
const subscriber = fc.record({ caller: fc.constantFrom(...callers), filters })

type Subscriber = typeof subscriber extends fc.Arbitrary<infer T> ? T : never

/** A subscriber whose view is maintained from messages alone. */
class Watcher {
  readonly view = new Map<string, Message>()
  private socket: Watching | null = null
  private since: string | undefined
  /**
   * Whether it has disconnected before. Under a rule that reads claims, changes may then be sent again, as may removals
   * of records that it never received.
   */
  private wasDisconnected = false

  constructor(
    private readonly server: TestServer,
    readonly of: Subscriber,
  ) {}

  async open(): Promise<void> {
    const { caller, filters } = this.of
    const token = caller === null ? {} : { token: await this.server.token(caller) }
    const subscribe = this.since === undefined ? { ...filters } : { ...filters, since: this.since }
    // The URL already subscribes without filters; this subscription replaces it.
    this.socket = await watch(this.server.url, { channel, ...token, subscribe })
    if (this.since !== undefined) expect(this.socket.subscribed.recovered).toBe(true)
    this.since = this.socket.subscribed.cursor
  }

  private apply(messages: readonly Message[]): void {
    for (const { cursor } of messages) this.since = cursor
    for (const change of changesIn(messages)) {
      const isStrict = this.of.caller === null || !this.wasDisconnected
      if (isStrict) expect(this.view.has(change.docId)).toBe(change.changeType !== 'added')
      if (change.data) expect('pin' in change.data).toBe(false)
      applyChanges(this.view, [change])
    }
  }

  /** Disconnects after applying half of the messages received so far. */
  async disconnect(): Promise<void> {
    const { socket } = this
    if (!socket) return
    this.socket = null
    await socket.close()
    this.apply(socket.waiting.slice(0, Math.ceil(socket.waiting.length / 2)))
    this.wasDisconnected = true
  }

  /** Applies every message up to a marker: the last change, in a table that only this subscriber watches. */
  async applyAll(id: string): Promise<void> {
    const { socket, server } = this
    if (!socket) return
    socket.send({ type: 'subscribe', channel: `dblive:shared:marks:${id}` })
    const before = await socket.until(({ type }) => type === 'subscribed')
    await server.service.post('/api/db/shared/tables/marks', { id })
    const after = await socket.until(({ docId }) => docId === id)
    this.apply([...before.slice(0, -1), ...after.slice(0, -1)])
  }

  get isDisconnected(): boolean {
    return this.socket === null
  }
}

describeServer('subscriptions', { config }, (server) => {
  let marks = 0

  async function write(step: Step): Promise<void> {
    if (step.kind === 'put') await server.service.post(`${rows}?upsert=true`, { id: step.id, ...step.row })
    if (step.kind === 'delete') await server.service.delete(`${rows}/${step.id}`)
    if (step.kind === 'batch')
      await server.service.post(`${rows}/batch?upsert=true`, {
        inserts: step.rows.map(({ id, row }) => ({ id, ...row })),
      })
  }

  async function run(subscribers: readonly Subscriber[], steps: readonly Step[]): Promise<void> {
    for (;;) {
      const { body } = await server.service.post(`${rows}/batch-by-filter`, { action: 'delete' })
      if (body.processed < 500) break
    }
    const watchers = subscribers.map((one) => new Watcher(server, one))
    for (const watcher of watchers) await watcher.open()
    for (const step of steps) {
      const target = step.kind === 'leave' ? watchers[step.who % watchers.length] : undefined
      if (target?.isDisconnected) await target.open()
      else await target?.disconnect()
      if (step.kind === 'restart') {
        for (const watcher of watchers) await watcher.disconnect()
        await server.restart()
      }
      await write(step)
    }
    for (const watcher of watchers) if (watcher.isDisconnected) await watcher.open()
    for (const watcher of watchers) await compare(watcher)
    for (const watcher of watchers) await watcher.disconnect()
  }

  /** A query with the same filters, by the same caller. */
  async function compare(watcher: Watcher): Promise<void> {
    const { caller, filters } = watcher.of
    const client = caller === null ? server.anonymous : server.as(caller)
    await watcher.applyAll(`mark${++marks}`)
    const texts = { filter: filters.filters ?? undefined, orFilter: filters.orFilters ?? undefined }
    const { status, body } = await client.get(`${rows}${query({ ...texts, limit: 1000 })}`)
    expect(status).toBe(200)
    const found = new Map<string, Message>(body.items.map((row: Message) => [row.id, row]))
    expect(watcher.view).toEqual(found)
  }

  test('[SUB-67] a view maintained from messages equals a query', async () => {
    await server.service.post(members, { userId: 'mia', label: 'red' })
    await fc.assert(
      fc.asyncProperty(
        fc.array(subscriber, { minLength: 1, maxLength: 4 }),
        fc.array(step, { minLength: 5, maxLength: 40 }),
        run,
      ),
      { numRuns: 25 },
    )
  })
})
