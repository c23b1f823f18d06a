/**
 * The nodes of a server and what each answers to questions of administrators, such as what it says of itself. A node
 * announces itself, and answers when it is queried; one that has been silent for a while is forgotten. Nothing is
 * decided by this: leases are for that.
 */
import { createSingleFlight } from '../../base/concurrency/single-flight.ts'
import type { Log } from '../../base/log.ts'
import { nodeAnnounceMs, nodeAnswerMs, nodeQueriesMax, nodeSilenceMs, nodesMax } from '../../limits/redis.ts'
import type { Bus } from './cluster.ts'

export interface NodeDirectory<Question, Answer> {
  /** The answers of this node and of all others that answer in time; this node comes first. */
  query(question: Question): Promise<readonly Answer[]>
  close(): void
}

export interface NodeDirectoryDeps<Question, Answer> {
  /** The channel of the bus: one for each kind of question. */
  readonly channel: string
  /** Null where this process is the only node. */
  readonly bus: Bus | null
  /** Identifies this process. */
  readonly own: string
  /** The answer of this node as JSON; `isOwn` to a question of its own. */
  readonly answer: (question: Question, isOwn: boolean) => Promise<Answer>
  readonly log: Log
}

type Message<Question, Answer> =
  /** A node that starts has no question: the others answer, so that it knows them before they announce themselves. */
  | { readonly kind: 'here' | 'gone' | 'greet'; readonly from: string }
  | { readonly kind: 'query'; readonly from: string; readonly id: number; readonly question: Question }
  | {
      readonly kind: 'answer'
      readonly from: string
      readonly to: string
      readonly id: number
      readonly answer: Answer
    }

export const openNodeDirectory = <Question, Answer>(
  deps: NodeDirectoryDeps<Question, Answer>,
): NodeDirectory<Question, Answer> =>
  deps.bus === null
    ? { query: async (question) => [await deps.answer(question, true)], close() {} }
    : new BusDirectory(deps.bus, deps)

interface PendingQuery<Answer> {
  readonly answers: Map<string, Answer>
  onAnswer(): void
}

class BusDirectory<Question, Answer> implements NodeDirectory<Question, Answer> {
  readonly #bus: Bus
  readonly #deps: NodeDirectoryDeps<Question, Answer>
  /** When another node was last received from, in monotonic milliseconds. */
  readonly #lastMessageMs = new Map<string, number>()
  /** Callers with the same question at one time share one query of the nodes. */
  readonly #querying = createSingleFlight<readonly Answer[]>()
  readonly #announcements: ReturnType<typeof setInterval>
  readonly #unsubscribe: () => void
  readonly #pending = new Map<number, PendingQuery<Answer>>()
  #lastId = 0

  constructor(bus: Bus, deps: NodeDirectoryDeps<Question, Answer>) {
    this.#bus = bus
    this.#deps = deps
    this.#unsubscribe = bus.subscribe(deps.channel, (text) =>
      this.#receive(JSON.parse(text) as Message<Question, Answer>),
    )
    this.#announcements = setInterval(() => this.#publish({ kind: 'here', from: deps.own }), nodeAnnounceMs)
    this.#announcements.unref()
    this.#publish({ kind: 'greet', from: deps.own })
  }

  query(question: Question): Promise<readonly Answer[]> {
    return this.#querying.run(JSON.stringify(question), () => this.#query(question))
  }

  close(): void {
    clearInterval(this.#announcements)
    this.#unsubscribe()
    this.#publish({ kind: 'gone', from: this.#deps.own })
  }

  async #query(question: Question): Promise<readonly Answer[]> {
    const { own, answer } = this.#deps
    this.#forgetSilent()
    const expected = new Set(this.#lastMessageMs.keys())
    // Beyond the bound the other nodes are not queried: the administrator sees this node alone.
    if (expected.size === 0 || this.#pending.size >= nodeQueriesMax) return [await answer(question, true)]
    const { promise: isComplete, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, nodeAnswerMs)
    const answers = new Map<string, Answer>()
    const onAnswer = (): void => {
      if (expected.isSubsetOf(new Set(answers.keys()))) resolve()
    }
    const id = ++this.#lastId
    this.#pending.set(id, { answers, onAnswer })
    try {
      this.#publish({ kind: 'query', from: own, id, question })
      const first = await answer(question, true)
      await isComplete
      return [first, ...[...answers].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, other]) => other)]
    } finally {
      clearTimeout(timer)
      this.#pending.delete(id)
    }
  }

  #receive(message: Message<Question, Answer>): void {
    const { own, answer, log } = this.#deps
    const { from } = message
    if (from === own) return
    if (message.kind === 'gone') {
      this.#lastMessageMs.delete(from)
      return
    }
    if (this.#lastMessageMs.size < nodesMax || this.#lastMessageMs.has(from))
      this.#lastMessageMs.set(from, performance.now())
    if (message.kind === 'greet') this.#publish({ kind: 'here', from: own })
    else if (message.kind === 'query') {
      const { id, question } = message
      answer(question, false).then(
        (given) => this.#publish({ kind: 'answer', from: own, to: from, id, answer: given }),
        (error) => log.error('cluster.status_failed', { error }),
      )
    } else if (message.kind === 'answer' && message.to === own) {
      const pending = this.#pending.get(message.id)
      pending?.answers.set(from, message.answer)
      pending?.onAnswer()
    }
  }

  #publish(message: Message<Question, Answer>): void {
    this.#bus.publish(this.#deps.channel, JSON.stringify(message))
  }

  #forgetSilent(): void {
    const nowMs = performance.now()
    for (const [node, lastMessageMs] of this.#lastMessageMs)
      if (nowMs - lastMessageMs > nodeSilenceMs) this.#lastMessageMs.delete(node)
  }
}
