/**
 * One host: a child process that runs functions. Owns the process and its channel; `host-pool` decides what it runs.
 */
import { fileURLToPath } from 'node:url'
import { withHandles } from '../../base/files/open-files.ts'
import type { HostFailure } from './hosts.ts'
import { type FromHost, type FromInvocation, isLast, type ToHost } from './protocol.ts'
import { residentBytes } from './resident-bytes.ts'

const program = fileURLToPath(new URL('../../host/main.ts', import.meta.url))

/** An invocation as its host sees it. */
export interface HostedInvocation {
  readonly name: string
  /** Whether the host may have begun to run it. */
  readonly hasStarted: boolean
  /** Whether nothing that the host reports matters any more. */
  readonly isOver: boolean
  onMessage(message: FromInvocation): void
  fail(failure: HostFailure): void
  /** Gives it to another host; this one has not begun it. */
  move(): void
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
  /** Why it was killed, or why it ended itself. */
  #reason: string | null = null
  #hasEnded = false
  /** Whether its event loop does not run: it answers nothing. */
  isBlocked = false
  /** Whether an invocation is past its deadline and has not ended: the host may soon be killed. */
  isOverdue = false
  /** Since when a ping has not been answered. */
  #pingedMs: number | null = null
  /** Resolves when the process has ended. */
  readonly ended = Promise.withResolvers<void>()

  constructor(options: HostProcessOptions) {
    this.#options = options
    this.#child = withHandles(() =>
      Bun.spawn([process.execPath, program], {
        cwd: options.folder,
        // The code must not have the secrets of the server.
        env: { ...options.environment },
        stdin: 'ignore',
        stdout: 'ignore',
        stderr: 'ignore',
        serialization: 'advanced',
        ipc: (message) => this.#receive(message as FromHost),
        onExit: (_, code, signal) => this.#end(code, signal),
      }),
    )
    this.#child.unref()
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
    if (this.#hasEnded) return
    try {
      this.#child.send(message)
    } catch (error) {
      this.kill(`the process cannot be written to: ${error}`)
    }
  }

  /** Milliseconds since a ping that is not answered; sends one if there is none. */
  ping(): number {
    if (this.#pingedMs !== null) return performance.now() - this.#pingedMs
    this.#pingedMs = performance.now()
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
    this.#pingedMs = null
    const wasBlocked = this.isBlocked
    this.isBlocked = false
    if ('id' in message) {
      const invocation = this.invocations.get(message.id)
      if (isLast(message)) this.invocations.delete(message.id)
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
