/**
 * One host: a child process that runs functions. Owns the process and its channel; `host-pool` decides what it runs.
 */
import { fileURLToPath } from 'node:url'
import { withHandles } from '../../base/files/open-files.ts'
import { hostHooksGathered, hostWatchIdleMs } from '../../limits/functions.ts'
import { ClaimTable } from './claims.ts'
import type { HostFailure } from './hosts.ts'
import { createOutbox, type Packet } from './outbox.ts'
import { availableMs, type ProgressSample, sampleProgress } from './progress.ts'
import {
  decodeFromHost,
  type FromHost,
  type FromInvocation,
  hasBytes,
  type InvokeMessage,
  isLast,
  type ToHost,
} from './protocol.ts'
import { residentBytes } from './resident-bytes.ts'

const program = fileURLToPath(new URL('../../host/main.ts', import.meta.url))

/** An invocation as its host sees it. */
export interface HostedInvocation {
  readonly id: string
  readonly name: string
  /** Whether the host may have begun to run it. */
  readonly hasStarted: boolean
  /** Whether nothing that the host reports matters any more. */
  readonly isOver: boolean
  /** Whether it is one of the hooks before a write. */
  readonly isHook: boolean
  onMessage(message: FromInvocation): void
  fail(failure: HostFailure): void
  /** Gives it to another host; this one has not begun it. */
  move(): void
  /** Watches its deadline and its signal if it has lasted `hostAbortWatchMs`. */
  watch(nowMs: number): void
}

export interface HostProcessOptions {
  /** The working directory of the code. */
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
  /** Messages that do not concern an invocation. */
  readonly onMessage: (message: FromHost) => void
  /** The host can take more invocations than before. */
  readonly onCapacity: () => void
  /** Called once, when the process has ended. */
  readonly onEnd: () => void
}

export class HostProcess {
  readonly #child: Bun.Subprocess
  readonly #options: HostProcessOptions
  readonly startedMs = performance.now()
  /** Invocations that it was given, by id; an aborted one until the host has ended it. */
  readonly invocations = new Map<string, HostedInvocation>()
  #hooks = 0
  readonly #claims: ClaimTable
  readonly #outbox = createOutbox<ToHost>({
    hasBytes,
    sizeOf: () => 0,
    encode: (message) => JSON.stringify(message),
    send: (packet) => this.#write(packet),
  })
  /** Why it was killed, or why it ended itself. */
  #reason: string | null = null
  #hasEnded = false
  /** Whether its event loop does not run: it answers nothing. */
  isBlocked = false
  /** Whether an invocation is past its deadline and has not ended: the host may soon be killed. */
  isOverdue = false
  /** When the pool last inspected it while it was idle. */
  inspectedMs = this.startedMs
  /** When it last sent something. */
  #lastMessageMs = this.startedMs
  /** When the ping was sent that has not been answered. */
  #pinged: ProgressSample | null = null
  /** When the invocation was found waiting that the host begins next. */
  #waiting: { readonly id: string; readonly since: ProgressSample } | null = null
  /** Resolves when the process has ended. */
  readonly ended = Promise.withResolvers<void>()

  constructor(options: HostProcessOptions) {
    this.#options = options
    this.#claims = withHandles(() => new ClaimTable())
    try {
      this.#child = withHandles(() => this.#spawn())
    } finally {
      this.#claims.release()
    }
    this.#child.unref()
  }

  #spawn(): Bun.Subprocess {
    const { folder, environment } = this.#options
    return Bun.spawn([process.execPath, program], {
      cwd: folder,
      // The code must not have the secrets of the server.
      env: { ...environment },
      stdio: ['ignore', 'ignore', 'ignore', this.#claims.descriptor],
      serialization: 'advanced',
      ipc: (packet: Packet<FromHost>) => {
        for (const message of decodeFromHost(packet)) this.#receive(message)
      },
      onExit: (_, code, signal) => this.#end(code, signal),
    })
  }

  get pid(): number {
    return this.#child.pid
  }

  get isAlive(): boolean {
    return !this.#hasEnded && this.#reason === null
  }

  /** Why it ended, for the log. */
  get reason(): string {
    return this.#reason ?? 'the process ended'
  }

  /** Bytes; null if unknown. */
  residentBytes(): number | null {
    return residentBytes(this.pid)
  }

  send(message: ToHost): void {
    if (!this.#hasEnded) this.#outbox.post(message)
  }

  #write(packet: Packet<ToHost>): void {
    if (this.#hasEnded) return
    try {
      this.#child.send(packet)
    } catch (error) {
      this.kill(`the process cannot be written to: ${error}`)
    }
  }

  /** Gives it an invocation. */
  invoke(invocation: HostedInvocation, message: Omit<InvokeMessage, 'type' | 'id' | 'claim'>): void {
    const { id } = invocation
    this.invocations.set(id, invocation)
    if (invocation.isHook) this.#hooks++
    this.send({ type: 'invoke', id, claim: this.#claims.offer(id), ...message })
  }

  /** Whether it has begun an invocation. */
  hasBegun(id: string): boolean {
    return this.#claims.hasBegun(id)
  }

  /** See `ClaimTable`. */
  stepOf(id: string): number {
    return this.#claims.step(id)
  }

  /** Takes an invocation back, which it then cannot begin. False if it has begun it. */
  takeBack(id: string): boolean {
    if (!this.#claims.withdraw(id)) return false
    this.#remove(id)
    return true
  }

  #remove(id: string): void {
    if (this.invocations.get(id)?.isHook) this.#hooks--
    this.invocations.delete(id)
  }

  /** What an invocation weighs that it has. For a hook, the first `hostHooksGathered` hooks weigh nothing. */
  loadFor({ isHook }: Pick<HostedInvocation, 'isHook'>): number {
    return this.invocations.size - (isHook ? Math.min(this.#hooks, hostHooksGathered) : 0)
  }

  /** Milliseconds in which it could have begun the invocation that it begins next. */
  waitingMs(): number {
    const next = this.#hasEnded ? undefined : this.#nextToBegin()
    if (next === undefined) {
      this.#waiting = null
      return 0
    }
    const now = sampleProgress(this.pid)
    if (this.#waiting?.id !== next) this.#waiting = { id: next, since: now }
    return availableMs(this.#waiting.since, now)
  }

  #nextToBegin(): string | undefined {
    for (const id of this.invocations.keys()) if (!this.#claims.hasBegun(id)) return id
    return undefined
  }

  /** Milliseconds in which it could have answered a ping. Sends one to a host that has been silent for a while. */
  pingMs(): number {
    if (this.#pinged) return availableMs(this.#pinged, sampleProgress(this.pid))
    // A ping wakes the process, which the hooks of one writer leave idle a hundred times per second.
    if (performance.now() - this.#lastMessageMs < hostWatchIdleMs) return 0
    this.#pinged = sampleProgress(this.pid)
    this.send({ type: 'ping' })
    return 0
  }

  /** Explains an end that the process has announced. */
  explain(reason: string): void {
    this.#reason ??= reason
  }

  kill(reason: string): void {
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #receive(message: FromHost): void {
    this.#lastMessageMs = performance.now()
    this.#pinged = null
    const wasBlocked = this.isBlocked
    this.isBlocked = false
    if ('id' in message) {
      const invocation = this.invocations.get(message.id)
      if (isLast(message)) {
        this.#remove(message.id)
        this.#claims.end(message.id)
      }
      if (invocation) invocation.onMessage(message)
      else if (message.type === 'request')
        this.send({ type: 'response', request: message.request, response: invocationOver })
      if (isLast(message)) {
        if (this.isOverdue) this.isOverdue = [...this.invocations.values()].some(({ isOver }) => isOver)
        this.#options.onCapacity()
      }
    } else this.#options.onMessage(message)
    if (wasBlocked) this.#options.onCapacity()
  }

  #end(code: number | null, signal: number | string | null): void {
    this.#hasEnded = true
    this.#reason ??= signal === null ? `the process ended with code ${code}` : `the process was ended by ${signal}`
    this.#options.onEnd()
    this.ended.resolve()
  }
}

/** Answers requests of an invocation that is over. */
export const invocationOver = {
  status: 499,
  headers: {},
  body: '{"code":499,"message":"The invocation is over","slug":"aborted"}',
}
