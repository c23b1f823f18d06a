/**
 * Image variants: other sizes and formats of stored images, rendered on first request and cached beside the object.
 * Owns scheduling (a fair queue, single flight for equal requests) and caching; the `images` engine renders.
 */

import { type Caller, callerKey } from '../../access/caller.ts'
import type { BucketDefinition } from '../../access/definition.ts'
import type { Clock } from '../../base/clock.ts'
import { createFairQueue } from '../../base/concurrency/fair-queue.ts'
import { createLru } from '../../base/concurrency/lru.ts'
import { createSingleFlight } from '../../base/concurrency/single-flight.ts'
import { sha256 } from '../../base/crypto/hash.ts'
import type { Blobs } from '../../engines/blobs/blobs.ts'
import {
  ImageError,
  type ImageFit,
  type ImageFormat,
  type Images,
  type ImageVariant,
} from '../../engines/images/images.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import { badRequest, clientClosedRequest, payloadTooLarge, unavailable } from '../../errors.ts'
import { queueRefusal } from '../../http/replies/queue-refusal.ts'
import {
  imageSlowMax,
  imageSlowRetryMs,
  imageSourceBytesMax,
  imagesAtOnceMax,
  imagesWaitingMax,
  imagesWaitingPerCallerMax,
  imageVariantsMax,
  imageWaitMs,
  sniffBytes,
  uncachedVariantMs,
  variantCachedMs,
} from '../../limits/storage.ts'
import type { BlobPart, BlobRegistry } from './blobs/blob-registry.ts'
import { type Content, readSpan, streamOf } from './download.ts'
import type { Store } from './migrations.ts'
import type { StoredObject } from './object-rows.ts'
import { sniffImage } from './uploads/content.ts'
import { etagOf } from './uploads/upload.ts'
import type { Variant, VariantCache } from './variant-cache.ts'

export interface VariantQuery {
  readonly width?: number | undefined
  readonly height?: number | undefined
  readonly fit?: ImageFit | undefined
  readonly format?: ImageFormat | 'jpg' | undefined
}

/** The variant that the query requests; null for the unmodified file. */
export function variantOf({ width, height, fit = 'cover', format }: VariantQuery): ImageVariant | null {
  if (width === undefined && height === undefined && format === undefined) return null
  return { width: width ?? null, height: height ?? null, fit, format: format === 'jpg' ? 'jpeg' : (format ?? null) }
}

/** The caller of a rendering, for scheduling and cancellation. */
export interface VariantRequest {
  readonly caller: Caller
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

export interface ImageVariants {
  /**
   * The object as a variant. Throws 400 if the file is not an image or the result would be too large, 413 if the source
   * is too large, 429 if too many renderings of the caller are queued, 503 if the queue is full or rendering takes too
   * long.
   */
  derive(
    bucket: BucketDefinition,
    object: StoredObject,
    variant: ImageVariant,
    request: VariantRequest,
  ): Promise<Content>
}

/** Types that the engine decodes. */
const readable = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])
const notAnImage = 'The file is not an image in a supported format'

/**
 * Passes the bytes through. Throws 400 before the first of them if they do not begin like a supported image. The
 * content decides, not the declared type: other decoders of the library must not process untrusted input.
 */
async function* onlyImage(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array()
  for await (const bytes of stream) {
    if (head === null) {
      yield bytes
      continue
    }
    head = Buffer.concat([head, bytes])
    if (head.length < sniffBytes) continue
    if (!readable.has(sniffImage(head) ?? '')) throw badRequest(notAnImage)
    yield head
    head = null
  }
  if (head === null) return
  if (!readable.has(sniffImage(head) ?? '')) throw badRequest(notAnImage)
  yield head
}

/** Maps errors of the queue and the engine to API errors. */
function apiErrorOf(error: unknown): unknown {
  if (!(error instanceof ImageError)) return queueRefusal(error, 'images')
  if (error.kind === 'refused') return badRequest(error.message)
  return unavailable(imageSlowRetryMs / 1000, error.message)
}

interface ImageVariantsDeps {
  readonly store: Store
  readonly blobs: Blobs
  readonly blobRegistry: BlobRegistry
  readonly variantCache: VariantCache
  readonly images: Images
  readonly clock: Clock
}

export function createImageVariants({
  store,
  blobs,
  blobRegistry,
  variantCache,
  images,
  clock,
}: ImageVariantsDeps): ImageVariants {
  const { database, tables } = store
  const flights = createSingleFlight<Variant>()
  const queue = createFairQueue({
    running: imagesAtOnceMax,
    waiting: imagesWaitingMax,
    waitingPerCaller: imagesWaitingPerCallerMax,
    waitMs: imageWaitMs,
  })
  /** Variants that exceeded the time limit, each with the time until which it is rejected without another attempt. */
  const slow = createLru<string, { readonly untilMs: number; readonly error: ImageError }>(imageSlowMax)

  async function render(object: StoredObject, variant: ImageVariant, signal: AbortSignal): Promise<Uint8Array> {
    const source = await readSpan(blobs, object.blobs, { start: 0, end: object.size })
    return images.render(onlyImage(streamOf(source)), variant, signal)
  }

  async function make(
    bucket: BucketDefinition,
    object: StoredObject,
    image: Uint8Array,
    name: string,
  ): Promise<Variant> {
    const type = sniffImage(image) ?? object.contentType
    const scope = { bucket, owner: null }
    const blob = await blobRegistry.stage(
      once(image),
      { bytesMax: image.length, size: image.length, isUncounted: true as const },
      scope,
    )
    const row = { blob: blob.id, size: blob.size, etag: etagOf(blob.sha256), type }
    const isKept =
      variantCache.fits(bucket, row.size) &&
      (await database.write(async (tx) => {
        await tx.lock(`storage picture ${object.version}`)
        // The object may have been replaced meanwhile; a variant of a removed version would never be released.
        const [there] = await tx.all(sql`SELECT version FROM ${tables.objects} WHERE bucket = ${bucket.name}
        AND key = ${object.key} AND version = ${object.version}${database.dialect.forUpdate}`)
        const known = await tx.all<{ variant: string; made: number }>(sql`SELECT variant, made FROM ${tables.derived}
        WHERE version = ${object.version} ORDER BY made`)
        if (!there || known.some((one) => one.variant === name)) return false
        let gone: readonly BlobPart[] = []
        const [oldest] = known
        if (oldest && known.length >= imageVariantsMax) {
          const ageMs = clock.now() - oldest.made
          // A negative age comes from a clock that was ahead.
          if (ageMs >= 0 && ageMs < variantCachedMs) return false
          gone = await variantCache.remove(tx, bucket, object.version, oldest.variant)
        }
        await blobRegistry.adopt(tx, blob)
        await variantCache.add(tx, bucket, { version: object.version, variant: name }, row)
        await blobRegistry.release(tx, scope, gone)
        return true
      }))
    if (isKept) {
      await variantCache.evict(bucket)
      return row
    }
    await blobRegistry.releaseStaged(blob, scope, uncachedVariantMs)
    return (await variantCache.find({ version: object.version, variant: name })) ?? row
  }

  /** Remembers variants that exceeded the time limit, so that repeated requests do not occupy the processes. */
  async function unlessSlow<T>(id: string, work: () => Promise<T>): Promise<T> {
    const known = slow.get(id)
    if (known && known.untilMs > clock.now()) throw known.error
    try {
      return await work()
    } catch (error) {
      if (error instanceof ImageError && error.kind === 'slow')
        slow.set(id, { untilMs: clock.now() + imageSlowRetryMs, error })
      throw error
    }
  }

  return {
    async derive(bucket, object, variant, { caller, signal }) {
      if (!readable.has(object.contentType)) throw badRequest(notAnImage)
      if (object.size > imageSourceBytesMax) throw payloadTooLarge(imageSourceBytesMax)
      const name = sha256(JSON.stringify([variant.width, variant.height, variant.fit, variant.format]))
      const id = `${object.version} ${name}`
      const known = await variantCache.find({ version: object.version, variant: name })
      const row =
        known ??
        (await flights
          .run(
            id,
            (wanted) =>
              unlessSlow(id, async () => {
                const image = await queue.enter(callerKey(caller), wanted, () => render(object, variant, wanted))
                return make(bucket, object, image, name)
              }),
            signal,
          )
          .catch((error: unknown) => {
            throw signal.aborted ? clientClosedRequest() : apiErrorOf(error)
          }))
      const { blob, size, etag, type } = row
      return { key: object.key, createdAt: object.createdAt, contentType: type, size, etag, blobs: [[blob, size]] }
    },
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
