/**
 * A process that runs the statements of one SQLite file, from its parent's side: starting it, asking it, and ending it
 * where a statement does not end by itself. Which of several processes is asked is `sandbox-sqlite`'s.
 */
import { fileURLToPath } from 'node:url'
import { MiB } from '../limits.ts'
import { sqlProcessBytesMax, sqlProcessEndMs, sqlProcessStartMs } from '../limits-resources.ts'
import { EngineError } from './error.ts'
import { type SandboxAnswer, type SandboxCounts, type SandboxLimits, StatementError, tookTooLong } from './sandbox.ts'
import { createFrameReader, writeFrame } from './sandbox-frames.ts'
import type { ChildReply, ChildRequest, SandboxLane } from './sandbox-sqlite-child.ts'

const program = fileURLToPath(new URL('./sandbox-sqlite-child.ts', import.meta.url))

/** What a process is waited for with. */
interface Waiting {
  readonly resolve: (answer: SandboxAnswer) => void
  readonly reject: (error: Error) => void
  readonly timer: ReturnType<typeof setTimeout>
}

const away = (message: string): EngineError => new EngineError('unavailable', message)

export class SandboxProcess {
  private readonly child: Bun.Subprocess<'pipe', 'pipe', 'ignore'>
  private readonly ready = Promise.withResolvers<void>()
  private waiting: Waiting | null = null
  /** Of an answer whose rows are still to come. */
  private counts: SandboxCounts | null = null
  /** Why it was ended, where it was. */
  private reason: Error | null = null
  private gone = false
  private spent = false
  /** From here on nobody can tell whether a statement has happened, until it is answered. */
  private committing = false

  constructor(
    path: string,
    private readonly limits: SandboxLimits,
    lane: SandboxLane,
  ) {
    this.child = Bun.spawn([process.execPath, program, path, JSON.stringify(limits), lane], {
      // It needs nothing that the environment holds, and must not have the secrets in it.
      env: {},
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'ignore',
      onExit: () => this.onExit(),
    })
    this.child.unref()
    this.ready.promise.catch(() => undefined)
    void this.read()
  }

  private get isAlive(): boolean {
    return !this.gone && this.reason === null
  }

  /** Whether it should be asked anything more. */
  get isUsable(): boolean {
    return this.isAlive && !this.spent
  }

  private async read(): Promise<void> {
    const take = createFrameReader((text) => this.onFrame(text))
    try {
      for await (const bytes of this.child.stdout) take(bytes)
    } catch (error) {
      this.end(away(`A SQL process cannot be read: ${error}`))
    }
  }

  private onFrame(text: string): void {
    if (this.counts) {
      const counts = this.counts
      this.counts = null
      this.settle(({ resolve }) => resolve({ ...counts, rows: text }))
      return
    }
    const reply = JSON.parse(text) as ChildReply
    switch (reply.kind) {
      case 'ready':
        this.ready.resolve()
        break
      case 'ran':
        // From here on the answer is waited for: whether the statement took too long is decided, and it did not.
        clearTimeout(this.waiting?.timer)
        if (!this.isAlive) break
        this.committing = true
        this.send('commit')
        break
      case 'done':
        this.counts = reply.counts
        this.spent = reply.isSpent
        break
      case 'refused':
        this.spent = reply.isSpent
        this.settle(({ reject }) => reject(new StatementError('query', reply.message)))
        break
      case 'full':
        this.settle(({ reject }) => reject(new StatementError('full', 'The database is full')))
        break
      case 'busy':
        this.settle(({ reject }) => reject(new EngineError('busy', 'The database is locked')))
        break
      case 'broken':
        this.end(away(reply.message))
    }
  }

  private settle(how: (waiting: Waiting) => void): void {
    const { waiting } = this
    this.waiting = null
    this.committing = false
    if (!waiting) return
    clearTimeout(waiting.timer)
    how(waiting)
  }

  private onExit(): void {
    this.gone = true
    const tooLarge = this.child.signalCode === 'SIGUSR2' && !this.committing
    const error =
      this.reason ??
      (tooLarge
        ? new StatementError('query', `The statement needs more than ${sqlProcessBytesMax / MiB} MiB of memory`)
        : away('A SQL process ended'))
    this.ready.reject(error)
    this.settle(({ reject }) => reject(error))
  }

  /** Ends the process at once, whatever it does; who waits for it is told `reason`. */
  private end(reason: Error): void {
    this.reason ??= reason
    this.child.kill('SIGKILL')
  }

  private send(request: ChildRequest): void {
    void this.written(() => {
      this.child.stdin.write(writeFrame(JSON.stringify(request)))
      return this.child.stdin.flush()
    })
  }

  /** A pipe that breaks is no news: its process has ended, and `onExit` says so to whoever waits. */
  private async written(write: () => unknown): Promise<void> {
    try {
      await write()
    } catch (error) {
      this.end(away(`A SQL process does not listen: ${error}`))
    }
  }

  /** Runs a statement; never two at once. Throws as `Sandbox` does. */
  async run(request: Exclude<ChildRequest, 'commit'>): Promise<SandboxAnswer> {
    const starting = setTimeout(() => this.end(away('A SQL process did not start')), sqlProcessStartMs)
    await this.ready.promise.finally(() => clearTimeout(starting))
    if (!this.isAlive) throw this.reason ?? away('A SQL process ended')
    return new Promise((resolve, reject) => {
      const { timeoutMs } = this.limits
      const timer = setTimeout(() => this.end(tookTooLong(timeoutMs)), timeoutMs)
      this.waiting = { resolve, reject, timer }
      this.send(request)
    })
  }

  /** Lets it fold its log back and end by itself, unless that takes long. */
  async close(): Promise<void> {
    if (this.gone) return
    this.reason ??= away('The database is closing')
    const timer = setTimeout(() => this.child.kill('SIGKILL'), sqlProcessEndMs)
    void this.written(() => this.child.stdin.end())
    await this.child.exited
    clearTimeout(timer)
  }
}
