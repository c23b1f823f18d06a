/**
 * A child process that is spoken to over its pipes in frames: start, readiness, sending, killing and closing. What the
 * frames mean belongs to the two programs (`sandbox-sqlite-process`, `images-process`). A child ends when its input
 * does, so it never outlives this process.
 */
import { withHandles } from '../../base/open-files.ts'
import { childEndMs, childStartMs } from '../../limits/processes.ts'
import { EngineError } from '../sql/error.ts'
import { createFrameReader, writeFrame } from './pipe-frames.ts'

export interface PipeProcessOptions {
  /** What the process is for, in errors: `SQL`, `image`. */
  readonly name: string
  /** Path of the program. */
  readonly program: string
  readonly args: readonly string[]
  readonly onFrame: (body: Buffer) => void
  /** Called once, with the reason why nothing more will be answered. */
  readonly onExit: (reason: Error) => void
  /** Why it ended by this signal where `kill` was not called; null for no particular reason. */
  readonly explainSignal?: (signal: string | number | null) => Error | null
}

const away = (message: string): EngineError => new EngineError('unavailable', message)

export class PipeProcess {
  private readonly child: Bun.Subprocess<'pipe', 'pipe', 'ignore'>
  private readonly readiness = Promise.withResolvers<void>()
  private reason: Error | null = null
  private hasExited = false

  constructor(private readonly options: PipeProcessOptions) {
    this.child = withHandles(() =>
      Bun.spawn([process.execPath, options.program, ...options.args], {
        // The program needs nothing from the environment and must not have the secrets in it.
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

  /** False once the process has ended or is being ended. */
  get isAlive(): boolean {
    return !this.hasExited && this.reason === null
  }

  private async read(): Promise<void> {
    const take = createFrameReader((body) => this.options.onFrame(body))
    try {
      for await (const bytes of this.child.stdout) take(bytes)
    } catch (error) {
      this.kill(away(`The ${this.options.name} process cannot be read: ${error}`))
    }
  }

  private exited(): void {
    this.hasExited = true
    const { name, explainSignal, onExit } = this.options
    const error = this.reason ?? explainSignal?.(this.child.signalCode) ?? away(`The ${name} process ended`)
    this.readiness.reject(error)
    onExit(error)
  }

  /** Called by the owner when the child has reported that it is ready. */
  markReady(): void {
    this.readiness.resolve()
  }

  /** Resolves once the child is ready. Throws `EngineError` `unavailable` where it does not start. */
  async ready(): Promise<void> {
    const { name } = this.options
    const timer = setTimeout(() => this.kill(away(`The ${name} process did not start`)), childStartMs)
    await this.readiness.promise.finally(() => clearTimeout(timer))
    if (!this.isAlive) throw this.reason ?? away(`The ${name} process ended`)
  }

  /** Sends one message; resolves when the pipe has room for more. A broken pipe kills the process, never throws. */
  async send(body: string | Uint8Array): Promise<void> {
    try {
      this.child.stdin.write(writeFrame(body))
      await this.child.stdin.flush()
    } catch (error) {
      this.kill(away(`The ${this.options.name} process does not read: ${error}`))
    }
  }

  /** Ends the process at once; `reason` is what `onExit` is given. */
  kill(reason: Error): void {
    this.reason ??= reason
    this.child.kill('SIGKILL')
  }

  /** Ends the input, waits for the process to end by itself, and kills it when that takes longer than `childEndMs`. */
  async close(): Promise<void> {
    if (this.hasExited) return
    this.reason ??= away(`The ${this.options.name} process is closing`)
    const timer = setTimeout(() => this.child.kill('SIGKILL'), childEndMs)
    try {
      await this.child.stdin.end()
    } catch {
      // The pipe is broken, so the process is about to end.
    }
    await this.child.exited
    clearTimeout(timer)
  }
}
