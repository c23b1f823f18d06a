/**
 * Port: a picture in another size or format. The adapter (`images-process`) renders in processes of its own, within a
 * deadline and bounds on pixels, bytes and memory; whether a caller may have a picture, and how many are made at once,
 * is the caller's concern.
 */

export const imageFormats = ['webp', 'avif', 'jpeg', 'png'] as const
export const imageFits = ['cover', 'contain', 'inside', 'outside', 'fill'] as const
export type ImageFormat = (typeof imageFormats)[number]
export type ImageFit = (typeof imageFits)[number]

/** How a picture is wanted. A side that is null follows from the other, or from the original. */
export interface ImageVariant {
  readonly width: number | null
  readonly height: number | null
  readonly fit: ImageFit
  /** Null for the original's own. */
  readonly format: ImageFormat | null
}

/**
 * Why a picture cannot be made; the message is for the caller. `slow`: it may succeed on a less busy machine.
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
   * Renders a variant of the picture whose bytes `source` streams. When `signal` aborts the work is killed and its
   * reason thrown. Throws `ImageError`, `EngineError` `unavailable` where no process can be had, and what `source`
   * throws.
   */
  render(source: AsyncIterable<Uint8Array>, variant: ImageVariant, signal: AbortSignal): Promise<Uint8Array>
  /** Ends every process. What runs fails. */
  close(): Promise<void>
}
