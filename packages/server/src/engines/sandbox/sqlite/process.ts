/**
 * Parent side of a child process for one SQLite file: the protocol of a statement and its deadline. `pipe-process` owns
 * start and shutdown, `sqlite` the choice of the process.
 */
import { fileURLToPath } from 'node:url'
import { sqlProcessBytesMax } from '../../../limits/resources.ts'
import { MiB } from '../../../limits/units.ts'
import { tooLargeSignal } from '../../processes/child-signals.ts'
import { PipeProcess } from '../../processes/pipe-process.ts'
import { EngineError } from '../../sql/error.ts'
import { type SandboxAnswer, type SandboxCounts, type SandboxLimits, StatementError, tookTooLong } from '../sandbox.ts'
import type { ChildReply, ChildRequest } from './child.ts'
import type { SandboxLane } from './confined.ts'

const program = fileURLToPath(new URL('./child.ts', import.meta.url))

/** The statement in progress. */
interface Waiting {
  readonly resolve: (answer: SandboxAnswer) => void
  readonly reject: (error: Error) => void
  readonly timer: ReturnType<typeof setTimeout>
}

export class SandboxProcess {
  private readonly process: PipeProcess
  private waiting: Waiting | null = null
  /** Counts of a reply whose rows have not arrived yet. */
  private counts: SandboxCounts | null = null
  private spent = false
  /** True from here until the reply: it is unknown whether the statement has been committed. */
  private committing = false

  constructor(
    path: string,
    private readonly limits: SandboxLimits,
    lane: SandboxLane,
  ) {
    this.process = new PipeProcess({
      name: 'SQL',
      program,
      args: [path, JSON.stringify(limits), lane],
      onFrame: (body) => this.onFrame(body.toString()),
      onExit: (reason) => this.finish(({ reject }) => reject(reason)),
      explainSignal: (signal) =>
        signal === tooLargeSignal && !this.committing
          ? new StatementError('query', `The statement needs more than ${sqlProcessBytesMax / MiB} MiB of memory`)
          : null,
    })
  }

  /** Whether it can run another statement. */
  get isUsable(): boolean {
    return this.process.isAlive && !this.spent
  }

  private onFrame(text: string): void {
    if (this.counts) {
      const counts = this.counts
      this.counts = null
      this.finish(({ resolve }) => resolve({ ...counts, rows: text }))
      return
    }
    const reply = JSON.parse(text) as ChildReply
    switch (reply.kind) {
      case 'ready':
        this.process.markReady()
        break
      case 'ran':
        // The statement met its deadline; the commit has none.
        clearTimeout(this.waiting?.timer)
        if (!this.process.isAlive) break
        this.committing = true
        this.send('commit')
        break
      case 'done':
        this.counts = reply.counts
        this.spent = reply.isSpent
        break
      case 'refused':
        this.spent = reply.isSpent
        this.finish(({ reject }) => reject(new StatementError('query', reply.message)))
        break
      case 'full':
        this.finish(({ reject }) => reject(new StatementError('full', 'The database is full')))
        break
      case 'diskFull':
        this.finish(({ reject }) => reject(new EngineError('unavailable', 'The disk is full')))
        break
      case 'busy':
        this.finish(({ reject }) => reject(new EngineError('busy', 'The database is locked')))
        break
      case 'broken':
        this.process.kill(new EngineError('unavailable', reply.message))
    }
  }

  private finish(how: (waiting: Waiting) => void): void {
    const { waiting } = this
    this.waiting = null
    this.committing = false
    if (!waiting) return
    clearTimeout(waiting.timer)
    how(waiting)
  }

  private send(request: ChildRequest): void {
    void this.process.send(JSON.stringify(request))
  }

  /** Runs a statement; one at a time. Throws like `Sandbox`. */
  async run(request: Exclude<ChildRequest, 'commit'>): Promise<SandboxAnswer> {
    await this.process.ready()
    return new Promise((resolve, reject) => {
      const { timeoutMs } = this.limits
      const timer = setTimeout(() => this.process.kill(tookTooLong(timeoutMs)), timeoutMs)
      this.waiting = { resolve, reject, timer }
      this.send(request)
    })
  }

  /** Lets the process checkpoint its log and exit; kills it if that takes too long. */
  close(): Promise<void> {
    return this.process.close()
  }
}
