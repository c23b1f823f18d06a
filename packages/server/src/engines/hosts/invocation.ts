/**
 * One invocation from its call to its result: queue, host, deadline, abort and stream. The result is settled once; the
 * host may still run the function until it reacts to the abort.
 */
import { hostAbortWatchMs, hostGraceMs, hostWatchBusyMs } from '../../limits/functions.ts'
import { type ChunkQueue, createChunkQueue, streamOf } from './chunk-queue.ts'
import { type HostedInvocation, type HostProcess, invocationOver } from './host-process.ts'
import { HostError, type HostFailure, type Invocation, type InvocationResult } from './hosts.ts'
import type { FromInvocation } from './protocol.ts'

export class RunningInvocation implements HostedInvocation {
  readonly id: string
  readonly #call: Invocation
  readonly #requeue: (invocation: RunningInvocation) => void
  readonly #result = Promise.withResolvers<InvocationResult>()
  /** For requests of the function. */
  #closing: AbortController | null = null
  #chunks: ChunkQueue<never> | null = null
  #host: HostProcess | null = null
  readonly #startedMs = performance.now()
  /** Ends the invocation at its deadline; null until it is watched. */
  #timer: ReturnType<typeof setTimeout> | null = null
  #signal: AbortSignal | null = null
  readonly #onAbort = (): void => this.#stop('aborted')
  #isOver = false

  /** `requeue` finds another host for it. */
  constructor(id: string, call: Invocation, requeue: (invocation: RunningInvocation) => void) {
    this.id = id
    this.#call = call
    this.#requeue = requeue
    if (call.timeoutMs <= hostAbortWatchMs + hostWatchBusyMs) this.#startTimer()
    // It may be rejected before the caller waits for it.
    this.#result.promise.catch(() => undefined)
  }

  /** Whether it is one of the hooks before a write. */
  get isHook(): boolean {
    return this.#call.together !== undefined
  }

  get result(): Promise<InvocationResult> {
    return this.#result.promise
  }

  /** The function that runs: of those that run together, the one that has not returned. */
  get name(): string {
    const { name, together } = this.#call
    return together?.[this.#host?.stepOf(this.id) ?? 0] ?? name
  }

  /** Whether nothing that the host reports matters any more. */
  get isOver(): boolean {
    return this.#isOver
  }

  get hasStarted(): boolean {
    return this.#host?.hasBegun(this.id) === true
  }

  /** Gives it to a host. */
  sendTo(host: HostProcess): void {
    const { name, input, context, timeoutMs, onHost } = this.#call
    this.#host = host
    onHost?.()
    host.invoke(this, { name, input, context, timeoutMs })
  }

  move(): void {
    if (!this.#host?.takeBack(this.id)) return
    this.#host = null
    this.#requeue(this)
  }

  onMessage(message: FromInvocation): void {
    if (this.#isOver) {
      // What it asks for is refused, so that it has no effects after its deadline.
      if (message.type === 'request') void this.#answer(message)
      return
    }
    switch (message.type) {
      case 'request':
        void this.#answer(message)
        return
      case 'log':
        this.#call.onLog(message.level, message.message, message.fields)
        return
      case 'value':
        this.#settle()
        this.#result.resolve({ kind: 'value', json: message.json })
        return
      case 'stream':
        this.#result.resolve({ kind: 'stream', values: this.#open<string>() })
        return
      case 'http': {
        const { status, headers, hasBody } = message
        const body = hasBody ? streamOf(this.#open<Uint8Array>()) : null
        if (!hasBody) this.#settle()
        this.#result.resolve({ kind: 'response', status, headers, body })
        return
      }
      case 'chunk':
        this.#chunks?.push(message.chunk as never)
        return
      case 'end':
        this.#settle()
        this.#chunks?.end()
        return
      case 'failed':
        this.fail(message.failure)
    }
  }

  /** Ends it without a result. */
  fail(failure: HostFailure): void {
    if (this.#isOver) return
    this.#settle()
    const error = new HostError(failure)
    this.#result.reject(error)
    this.#chunks?.fail(error)
  }

  #open<Chunk>(): ChunkQueue<Chunk> {
    const chunks = createChunkQueue<Chunk>({
      onRead: () => this.#host?.send({ type: 'pull', id: this.id }),
      onCancel: () => this.#stop('aborted'),
    })
    this.#chunks = chunks as unknown as ChunkQueue<never>
    return chunks
  }

  watch(nowMs: number): void {
    if (this.#timer || this.#isOver || nowMs - this.#startedMs < hostAbortWatchMs) return
    this.#startTimer()
    this.#signal = this.#call.signal?.() ?? null
    if (this.#signal?.aborted) this.#stop('aborted')
    else this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  #startTimer(): void {
    const remainingMs = Math.max(0, this.#call.timeoutMs - (performance.now() - this.#startedMs))
    this.#timer = setTimeout(() => this.#stop('timeout'), remainingMs)
    this.#timer.unref?.()
  }

  #settle(): void {
    this.#isOver = true
    if (this.#timer) clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#closing?.abort()
  }

  /** Aborts the function in its host, and kills the host if it does not react. */
  #stop(reason: 'timeout' | 'aborted'): void {
    if (this.#isOver) return
    const host = this.#host
    const hasBegun = host !== null && !host.takeBack(this.id)
    const remainingMs = reason === 'timeout' ? 0 : this.#call.timeoutMs
    const { name } = this
    this.fail(
      reason === 'timeout'
        ? { kind: 'timeout', message: `${name} did not end within ${this.#call.timeoutMs} ms`, function: name }
        : { kind: 'aborted', message: 'The caller has left' },
    )
    if (!hasBegun) return
    host.send({ type: 'abort', id: this.id, reason })
    if (reason === 'timeout') host.isOverdue = true
    const timer = setTimeout(() => {
      if (host.invocations.get(this.id) === this)
        host.kill(`${name} did not end within ${hostGraceMs} ms after its deadline`)
    }, remainingMs + hostGraceMs)
    timer.unref?.()
  }

  async #answer({ request, as, content }: FromInvocation & { type: 'request' }): Promise<void> {
    const host = this.#host
    this.#closing ??= new AbortController()
    const response = this.#isOver ? invocationOver : await this.#call.onRequest(content, as, this.#closing.signal)
    host?.send({ type: 'response', request, response })
  }
}
