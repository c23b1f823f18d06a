/**
 * Port: image transformations. The adapter (`images/process`) renders in child processes, within a deadline and bounds
 * on pixels, bytes and memory; the caller authorizes and bounds the concurrency.
 */

export const imageFormats = ['webp', 'avif', 'jpeg', 'png'] as const
export const imageFits = ['cover', 'contain', 'inside', 'outside', 'fill'] as const
export type ImageFormat = (typeof imageFormats)[number]
export type ImageFit = (typeof imageFits)[number]

/** The requested variant. A side that is null follows from the other side, or from the original. */
export interface ImageVariant {
  readonly width: number | null
  readonly height: number | null
  readonly fit: ImageFit
  /** Null for the format of the original. */
  readonly format: ImageFormat | null
}

/**
 * Why an image cannot be rendered; the message is for the caller. `slow`: it may succeed on a less busy machine.
 * `unsupported`: this installation has no image library.
 */
export class ImageError extends Error {
  constructor(
    readonly kind: 'refused' | 'slow' | 'unsupported',
    message: string,
  ) {
    super(message)
    this.name = 'ImageError'
  }
}

export interface Images {
  /**
   * Renders a variant of the image that `source` streams. When `signal` aborts, the work is killed and the signal's
   * reason thrown. Throws `ImageError`, `EngineError` `unavailable` if no process is available, and errors of `source`.
   */
  render(source: AsyncIterable<Uint8Array>, variant: ImageVariant, signal: AbortSignal): Promise<Uint8Array>
  /** Closes every process; running work fails. */
  close(): Promise<void>
}
