/**
 * Adapter of `Images` with child processes: one image per process at a time, killed at the deadline or when the request
 * is canceled.
 */
import { fileURLToPath } from 'node:url'
import { imageProcessBytesMax, imageProcessIdleMs } from '../../limits/storage.ts'
import { MiB } from '../../limits/units.ts'
import { tooLargeSignal } from '../processes/child-signals.ts'
import { PipeProcess } from '../processes/pipe-process.ts'
import { createProcessPool } from '../processes/process-pool.ts'
import type { ImageReply } from './child.ts'
import { ImageError, type Images, type ImageVariant } from './images.ts'

const program = fileURLToPath(new URL('./child.ts', import.meta.url))

class ImageProcess {
  private readonly process: PipeProcess
  private waiting: PromiseWithResolvers<Uint8Array> | null = null
  /** Whether the next frame is the image. */
  private isImageNext = false
  private isSpent = false

  constructor() {
    this.process = new PipeProcess({
      name: 'image',
      program,
      args: [],
      onFrame: (body) => this.onFrame(body),
      onExit: (reason) => this.finish(({ reject }) => reject(reason)),
      explainSignal: (signal) =>
        signal === tooLargeSignal
          ? new ImageError('refused', `The image needs more than ${imageProcessBytesMax / MiB} MiB of memory`)
          : null,
    })
  }

  get isUsable(): boolean {
    return this.process.isAlive && !this.isSpent
  }

  private finish(how: (waiting: PromiseWithResolvers<Uint8Array>) => void): void {
    const { waiting } = this
    this.waiting = null
    if (waiting) how(waiting)
  }

  private onFrame(body: Buffer): void {
    if (this.isImageNext) {
      this.isImageNext = false
      this.finish(({ resolve }) => resolve(body))
      return
    }
    const reply = JSON.parse(body.toString()) as ImageReply
    if (reply.kind === 'ready') {
      this.process.markReady()
      return
    }
    if (reply.kind === 'unsupported') {
      this.process.kill(unsupported())
      return
    }
    this.isSpent = reply.isSpent
    if (reply.kind === 'done') this.isImageNext = true
    else this.finish(({ reject }) => reject(new ImageError('refused', reply.message)))
  }

  private async send(source: AsyncIterable<Uint8Array>, variant: ImageVariant): Promise<void> {
    await this.process.send(JSON.stringify(variant))
    for await (const bytes of source) {
      if (!this.process.isAlive) return
      if (bytes.length > 0) await this.process.send(bytes)
    }
    await this.process.send('')
  }

  /** Renders one image; one at a time. */
  async render(source: AsyncIterable<Uint8Array>, variant: ImageVariant, bounds: Bounds): Promise<Uint8Array> {
    const { signal, timeoutMs } = bounds
    const abort = (): void => this.process.kill(signal.reason)
    signal.addEventListener('abort', abort)
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      await this.process.ready()
      signal.throwIfAborted()
      timer = setTimeout(() => this.process.kill(tooSlow(timeoutMs)), timeoutMs)
      const waiting = Promise.withResolvers<Uint8Array>()
      this.waiting = waiting
      // A source that fails leaves the process in the middle of a request.
      this.send(source, variant).catch((error: Error) => this.process.kill(error))
      return await waiting.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  close(): Promise<void> {
    return this.process.close()
  }
}

interface Bounds {
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

const unsupported = (): ImageError =>
  new ImageError(
    'unsupported',
    'Image transformations need the optional package sharp, which this server does not have',
  )

/** Whether the optional package is installed; whether its build fits this machine shows with the first image. */
export function hasImageLibrary(): boolean {
  try {
    import.meta.resolve('sharp')
    return true
  } catch {
    return false
  }
}

const tooSlow = (timeoutMs: number): ImageError =>
  new ImageError('slow', `Rendering took longer than ${timeoutMs / 1000} s; request a smaller image or another format`)

/** `timeoutMs` bounds one image, from when its process has started. */
export function openImageProcesses({ timeoutMs }: { readonly timeoutMs: number }): Images {
  const pool = createProcessPool({ start: () => new ImageProcess(), idleMs: imageProcessIdleMs })
  return {
    render: (source, variant, signal) => pool.use((process) => process.render(source, variant, { signal, timeoutMs })),
    close: () => pool.close(),
  }
}
