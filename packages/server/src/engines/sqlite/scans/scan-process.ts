/** Parent side of a process for scans: the protocol of a statement and its time limit. */
import { fileURLToPath } from 'node:url'
import { tooLargeSignal } from '../../processes/child-signals.ts'
import { PipeProcess } from '../../processes/pipe-process.ts'
import { EngineError } from '../../sql/error.ts'
import { scanTimedOut } from '../../sql/scan-queue.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { ScanReply, ScanRequest } from './scan-child.ts'

const program = fileURLToPath(new URL('./scan-child.ts', import.meta.url))

interface Waiting {
  readonly resolve: (rows: SqlRow[]) => void
  readonly reject: (error: Error) => void
  readonly timer: ReturnType<typeof setTimeout>
}

export class ScanProcess {
  readonly #process: PipeProcess
  #waiting: Waiting | null = null

  constructor() {
    this.#process = new PipeProcess({
      name: 'scan',
      program,
      args: [],
      onFrame: (body) => this.#onFrame(body.toString()),
      onExit: (reason) => this.#finish(({ reject }) => reject(reason)),
      explainSignal: (signal) =>
        signal === tooLargeSignal ? new EngineError('timeout', 'The query needs too much memory and was ended') : null,
    })
  }

  /** Whether it can run another statement. */
  get isUsable(): boolean {
    return this.#process.isAlive
  }

  /** Runs a statement; one at a time. The time limit begins when the process has started. */
  async run(request: ScanRequest, timeoutMs: number): Promise<SqlRow[]> {
    await this.#process.ready()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#process.kill(scanTimedOut(timeoutMs)), timeoutMs)
      this.#waiting = { resolve, reject, timer }
      void this.#process.send(JSON.stringify(request))
    })
  }

  close(): Promise<void> {
    return this.#process.close()
  }

  #onFrame(text: string): void {
    const reply = JSON.parse(text) as ScanReply
    if (reply === 'ready') this.#process.markReady()
    else if ('rows' in reply) this.#finish(({ resolve }) => resolve([...reply.rows]))
    else {
      const { kind, message } = reply.error
      this.#finish(({ reject }) => reject(kind ? new EngineError(kind, message) : new Error(message)))
    }
  }

  #finish(how: (waiting: Waiting) => void): void {
    const waiting = this.#waiting
    this.#waiting = null
    if (!waiting) return
    clearTimeout(waiting.timer)
    how(waiting)
  }
}
