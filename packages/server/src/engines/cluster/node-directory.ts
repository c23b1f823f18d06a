/**
 * The nodes of a server and what each says of itself, for administrators. A node announces itself, and answers when it
 * is queried; one that has been silent for a while is forgotten. Nothing is decided by this: leases are for that.
 */
import { createSingleFlight } from '../../base/concurrency/single-flight.ts'
import type { Log } from '../../base/log.ts'
import { nodeAnnounceMs, nodeAnswerMs, nodeSilenceMs, nodesMax } from '../../limits/redis.ts'
import type { Bus } from './cluster.ts'

export interface NodeDirectory<Status> {
  /** What this node and all others that answer in time say of themselves; this node comes first. */
  query(): Promise<readonly Status[]>
  close(): void
}

export interface NodeDirectoryDeps<Status> {
  /** Null where this process is the only node. */
  readonly bus: Bus | null
  /** Identifies this process. */
  readonly own: string
  /** What this node says of itself, as JSON. */
  readonly describe: () => Promise<Status>
  readonly log: Log
}

type Message<Status> =
  | { readonly kind: 'here' | 'gone'; readonly from: string }
  | { readonly kind: 'query'; readonly from: string; readonly id: number }
  | {
      readonly kind: 'status'
      readonly from: string
      readonly to: string
      readonly id: number
      readonly status: Status
    }

const channel = 'nodes'

export const openNodeDirectory = <Status>(deps: NodeDirectoryDeps<Status>): NodeDirectory<Status> =>
  deps.bus === null ? { query: async () => [await deps.describe()], close() {} } : new BusDirectory(deps.bus, deps)

interface PendingQuery<Status> {
  readonly id: number
  readonly answers: Map<string, Status>
  onAnswer(): void
}

class BusDirectory<Status> implements NodeDirectory<Status> {
  readonly #bus: Bus
  readonly #deps: NodeDirectoryDeps<Status>
  /** When another node was last received from, in monotonic milliseconds. */
  readonly #lastMessageMs = new Map<string, number>()
  /** All callers at one time share one query of the nodes. */
  readonly #querying = createSingleFlight<readonly Status[]>()
  readonly #announcements: ReturnType<typeof setInterval>
  readonly #unsubscribe: () => void
  #pending: PendingQuery<Status> | null = null
  #lastId = 0

  constructor(bus: Bus, deps: NodeDirectoryDeps<Status>) {
    this.#bus = bus
    this.#deps = deps
    this.#unsubscribe = bus.subscribe(channel, (text) => this.#receive(JSON.parse(text) as Message<Status>))
    this.#announcements = setInterval(() => this.#publish({ kind: 'here', from: deps.own }), nodeAnnounceMs)
    this.#announcements.unref()
    // Those that are there answer, so that this node knows them before they announce themselves.
    this.#publish({ kind: 'query', from: deps.own, id: 0 })
  }

  query(): Promise<readonly Status[]> {
    return this.#querying.run('', () => this.#query())
  }

  close(): void {
    clearInterval(this.#announcements)
    this.#unsubscribe()
    this.#publish({ kind: 'gone', from: this.#deps.own })
  }

  async #query(): Promise<readonly Status[]> {
    const { own, describe } = this.#deps
    this.#forgetSilent()
    const { promise: isComplete, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, nodeAnswerMs)
    const expected = new Set(this.#lastMessageMs.keys())
    const answers = new Map<string, Status>()
    const onAnswer = (): void => {
      if (expected.isSubsetOf(new Set(answers.keys()))) resolve()
    }
    this.#pending = { id: ++this.#lastId, answers, onAnswer }
    this.#publish({ kind: 'query', from: own, id: this.#lastId })
    const status = await describe()
    onAnswer()
    await isComplete
    clearTimeout(timer)
    this.#pending = null
    return [status, ...[...answers].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, answer]) => answer)]
  }

  #receive(message: Message<Status>): void {
    const { own, describe, log } = this.#deps
    if (message.from === own) return
    if (message.kind === 'gone') {
      this.#lastMessageMs.delete(message.from)
      return
    }
    if (this.#lastMessageMs.size < nodesMax || this.#lastMessageMs.has(message.from))
      this.#lastMessageMs.set(message.from, performance.now())
    if (message.kind === 'query') {
      const { from: to, id } = message
      describe().then(
        (status) => this.#publish({ kind: 'status', from: own, to, id, status }),
        (error) => log.error('cluster.status_failed', { error }),
      )
    } else if (message.kind === 'status' && message.to === own && message.id === this.#pending?.id) {
      this.#pending.answers.set(message.from, message.status)
      this.#pending.onAnswer()
    }
  }

  #publish(message: Message<Status>): void {
    this.#bus.publish(channel, JSON.stringify(message))
  }

  #forgetSilent(): void {
    const nowMs = performance.now()
    for (const [node, lastMessageMs] of this.#lastMessageMs)
      if (nowMs - lastMessageMs > nodeSilenceMs) this.#lastMessageMs.delete(node)
  }
}
