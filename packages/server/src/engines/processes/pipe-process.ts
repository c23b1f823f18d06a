/**
 * A child process that exchanges frames over pipes: start, readiness, sending, killing and closing. The programs
 * (`sandbox/sqlite/process`, `images/process`) define the frames. A child exits when its input ends, so it never
 * outlives this process.
 */
import { withHandles } from '../../base/files/open-files.ts'
import { childEndMs, childStartMs } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import { createFrameReader, writeFrame } from './pipe-frames.ts'

export interface PipeProcessOptions {
  /** Name of the process in errors: `SQL`, `image`. */
  readonly name: string
  /** Path of the program. */
  readonly program: string
  readonly args: readonly string[]
  readonly onFrame: (body: Buffer) => void
  /** Called once, with the reason why no further replies will arrive. */
  readonly onExit: (reason: Error) => void
  /** Explains a signal that `kill` did not send; null for no particular reason. */
  readonly explainSignal?: (signal: string | number | null) => Error | null
}

const unavailable = (message: string): EngineError => new EngineError('unavailable', message)

export class PipeProcess {
  private readonly child: Bun.Subprocess<'pipe', 'pipe', 'ignore'>
  private readonly readiness = Promise.withResolvers<void>()
  private reason: Error | null = null
  private hasExited = false

  constructor(private readonly options: PipeProcessOptions) {
    this.child = withHandles(() =>
      Bun.spawn([process.execPath, options.program, ...options.args], {
        // The program must not have the secrets of the environment.
        env: {},
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'ignore',
        onExit: () => this.exited(),
      }),
    )
    this.child.unref()
    this.readiness.promise.catch(() => undefined)
    void this.read()
  }

  /** False once the process has exited or is being killed. */
  get isAlive(): boolean {
    return !this.hasExited && this.reason === null
  }

  private async read(): Promise<void> {
    const take = createFrameReader((body) => this.options.onFrame(body))
    try {
      for await (const bytes of this.child.stdout) take(bytes)
    } catch (error) {
      this.kill(unavailable(`The ${this.options.name} process cannot be read: ${error}`))
    }
  }

  private exited(): void {
    this.hasExited = true
    const { name, explainSignal, onExit } = this.options
    const error = this.reason ?? explainSignal?.(this.child.signalCode) ?? unavailable(`The ${name} process ended`)
    this.readiness.reject(error)
    onExit(error)
  }

  /** Called by the owner when the child has reported readiness. */
  markReady(): void {
    this.readiness.resolve()
  }

  /** Resolves once the child is ready. Throws `EngineError` `unavailable` if it does not start. */
  async ready(): Promise<void> {
    const { name } = this.options
    const timer = setTimeout(() => this.kill(unavailable(`The ${name} process did not start`)), childStartMs)
    await this.readiness.promise.finally(() => clearTimeout(timer))
    if (!this.isAlive) throw this.reason ?? unavailable(`The ${name} process ended`)
  }

  /**
   * Sends one message; resolves when the pipe accepts more (backpressure). A broken pipe kills the process, never
   * throws.
   */
  async send(body: string | Uint8Array): Promise<void> {
    try {
      // The runtime writes a large frame at once: a broken pipe rejects this promise, not that of `flush`.
      await this.child.stdin.write(writeFrame(body))
      await this.child.stdin.flush()
    } catch (error) {
      this.kill(unavailable(`The ${this.options.name} process cannot be written to: ${error}`))
    }
  }

  /** Kills the process; `reason` is passed to `onExit`. */
  kill(reason: Error): void {
    this.reason ??= reason
    this.child.kill('SIGKILL')
  }

  /** Closes the input and waits for the process to exit; kills it after `childEndMs`. */
  async close(): Promise<void> {
    if (this.hasExited) return
    this.reason ??= unavailable(`The ${this.options.name} process is closing`)
    const timer = setTimeout(() => this.child.kill('SIGKILL'), childEndMs)
    try {
      await this.child.stdin.end()
    } catch {
      // The pipe is broken, so the process is exiting.
    }
    await this.child.exited
    clearTimeout(timer)
  }
}
