/**
 * Child process that renders one image at a time, received and returned over pipes. The only file that loads `sharp`:
 * the threads and memory of its encoders stay in a process that can be killed.
 */
import { setPriority } from 'node:os'
import type { Metadata, default as Sharp } from 'sharp'
import {
  imageFormatPixelsMax,
  imageOutputBytesMax,
  imagePixelsMax,
  imageProcessBytesMax,
  imageProcessNiceness,
  imageProcessPollMs,
} from '../../limits/storage.ts'
import { tooLargeSignal } from '../processes/child-signals.ts'
import { createFrameReader, writeFrame } from '../processes/pipe-frames.ts'
import { ImageError, type ImageVariant } from './images.ts'

/** Request of the parent: the variant, then the source in any number of frames, then an empty frame. */
export type ImageRequest = ImageVariant

/** Reply of the child. The image follows `done` in a frame of its own. */
export type ImageReply =
  | { readonly kind: 'ready' }
  /** Instead of `ready`: the optional package `sharp` is not installed, or has no build for this machine. */
  | { readonly kind: 'unsupported' }
  /** `isSpent`: the process has grown so large that it must be replaced. */
  | { readonly kind: 'done'; readonly isSpent: boolean }
  | { readonly kind: 'refused'; readonly message: string; readonly isSpent: boolean }

interface Sides {
  readonly width: number
  readonly height: number
}

/** Pixels of the result. With one side alone, or `outside`, the other side follows from the image. */
function pixelsOf({ width, height, fit }: ImageVariant, of: Sides): number {
  if (width !== null && height !== null && fit !== 'outside') return width * height
  if (fit === 'fill') return (width ?? of.width) * (height ?? of.height)
  const scale = Math.max((width ?? 0) / of.width, (height ?? 0) / of.height) || 1
  return of.width * of.height * (fit === 'inside' ? Math.min(scale, 1) : scale) ** 2
}

type OutputFormat = keyof typeof imageFormatPixelsMax

/** The format of the result; the library reports AVIF images as `heif`. */
function formatOf({ format }: ImageVariant, original: Metadata): OutputFormat {
  const name = format ?? (original.format === 'heif' ? 'avif' : original.format)
  if (name in imageFormatPixelsMax) return name as OutputFormat
  throw new ImageError('refused', 'The file is not an image of a supported type')
}

/** The fastest settings of the slow encoders: the default of AVIF takes thirteen times as long for 1% of the bytes. */
const effort: { readonly [Format in OutputFormat]?: number } = { avif: 2, gif: 1 }

async function render(sharp: typeof Sharp, source: Uint8Array, variant: ImageVariant): Promise<Uint8Array> {
  const image = sharp(source, { limitInputPixels: imagePixelsMax, failOn: 'error', sequentialRead: true, pages: 1 })
  const original = await image.metadata()
  const format = formatOf(variant, original)
  const pixels = pixelsOf(variant, original.autoOrient)
  const pixelsMax = imageFormatPixelsMax[format]
  if (pixels > pixelsMax)
    throw new ImageError(
      'refused',
      `The image would have ${Math.round(pixels)} pixels; the maximum for ${format} is ${pixelsMax}`,
    )
  const { width, height, fit } = variant
  const size = { ...(width === null ? {} : { width }), ...(height === null ? {} : { height }) }
  const sized = image.autoOrient().resize({ ...size, fit, withoutEnlargement: fit === 'inside' })
  const bytes = await sized.toFormat(format, { effort: effort[format] }).toBuffer()
  if (bytes.length > imageOutputBytesMax)
    throw new ImageError('refused', `The image would exceed ${imageOutputBytesMax} bytes`)
  return bytes
}

const end = (signal: NodeJS.Signals): void => void process.kill(process.pid, signal)

async function send(...bodies: readonly (string | Uint8Array)[]): Promise<void> {
  const output = Bun.stdout.writer()
  for (const body of bodies) output.write(writeFrame(body))
  await output.flush()
}

const reply = (message: ImageReply): string => JSON.stringify(message)
/** Memory is not returned to the system, and must not count against the next image. */
const isSpent = (): boolean => process.memoryUsage.rss() > imageProcessBytesMax / 2

async function respond(sharp: typeof Sharp, variant: ImageVariant, source: Uint8Array): Promise<void> {
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() > imageProcessBytesMax) end(tooLargeSignal)
  }, imageProcessPollMs)
  try {
    const image = await render(sharp, source, variant)
    await send(reply({ kind: 'done', isSpent: isSpent() }), image)
  } catch (error) {
    const message = error instanceof ImageError ? error.message : 'The file cannot be read as an image'
    await send(reply({ kind: 'refused', message, isSpent: isSpent() }))
  } finally {
    clearInterval(watch)
  }
}

const loadSharp = (): Promise<typeof Sharp | null> =>
  import('sharp').then(
    (library) => library.default,
    () => null,
  )

async function serve(): Promise<void> {
  setPriority(imageProcessNiceness)
  const sharp = await loadSharp()
  if (sharp === null) return send(reply({ kind: 'unsupported' }))
  // One thread per process: the number of processes bounds the CPU use.
  sharp.concurrency(1)
  sharp.cache(false)
  let variant: ImageVariant | null = null
  let parts: Buffer[] = []
  const take = createFrameReader((body) => {
    if (variant === null) variant = JSON.parse(body.toString()) as ImageRequest
    else if (body.length > 0) parts.push(body)
    else {
      void respond(sharp, variant, Buffer.concat(parts))
      variant = null
      parts = []
    }
  })
  await send(reply({ kind: 'ready' }))
  for await (const bytes of Bun.stdin.stream()) take(bytes)
  // The parent closed the pipe or exited; the image being rendered has no recipient.
  end('SIGKILL')
}

await serve()
