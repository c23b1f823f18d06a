/**
 * Pictures in other sizes and formats, made when they are first asked for and kept beside the object. Owns who may have
 * one made when (a fair queue, one rendering for equal requests) and what is kept; rendering is the `images` engine.
 */

import { type Caller, callerKey } from '../../access/caller.ts'
import type { BucketDefinition } from '../../access/definition.ts'
import type { Clock } from '../../base/clock.ts'
import { createFairQueue, QueueFullError, QueueTimeoutError } from '../../base/concurrency/fair-queue.ts'
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
import { badRequest, clientClosedRequest, payloadTooLarge, rateLimited, unavailable } from '../../errors.ts'
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
import type { StoredObject } from './objects.ts'
import type { Store } from './schema.ts'
import { sniffImage } from './uploads/content.ts'
import { etagOf } from './uploads/upload.ts'
import type { Variant, VariantCache } from './variant-cache.ts'

export interface VariantQuery {
  readonly width?: number | undefined
  readonly height?: number | undefined
  readonly fit?: ImageFit | undefined
  readonly format?: ImageFormat | 'jpg' | undefined
}

/** The variant that the query asks for; null where it asks for the file as it is. */
export function variantOf({ width, height, fit = 'cover', format }: VariantQuery): ImageVariant | null {
  if (width === undefined && height === undefined && format === undefined) return null
  return { width: width ?? null, height: height ?? null, fit, format: format === 'jpg' ? 'jpeg' : (format ?? null) }
}

/** For whom a picture is made. */
export interface VariantRequest {
  readonly caller: Caller
  /** Aborts when the client has gone away. */
  readonly signal: AbortSignal
}

export interface ImageVariants {
  /**
   * The object as a variant. Throws 400 for what is no picture or would be too large, 413 for a source too large, 429
   * with too many of the caller's waiting, 503 with too many waiting or where it takes too long.
   */
  derive(
    bucket: BucketDefinition,
    object: StoredObject,
    variant: ImageVariant,
    request: VariantRequest,
  ): Promise<Content>
}

/** The types the engine reads and we send as imageVariants. */
const readable = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])
const notAnImage = 'The file is not a picture'

/**
 * The bytes unchanged. Throws 400 before the first of them where they begin like no picture: what the bytes are
 * decides, not the declared type, since other decoders of the library must not see what a stranger sends.
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

/** What the caller is answered for a failure of the queue or the engine. */
function refusalOf(error: unknown): unknown {
  if (error instanceof QueueFullError) return error.bound === 'caller' ? rateLimited(1) : unavailable()
  if (error instanceof QueueTimeoutError) return unavailable()
  if (!(error instanceof ImageError)) return error
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
  /** Variants that took too long, with the time until which they are not tried again. */
  const slow = createLru<string, { readonly untilMs: number; readonly error: ImageError }>(imageSlowMax)

  async function render(object: StoredObject, variant: ImageVariant, signal: AbortSignal): Promise<Uint8Array> {
    const source = await readSpan(blobs, object.blobs, { start: 0, end: object.size })
    return images.render(onlyImage(streamOf(source)), variant, signal)
  }

  async function make(
    bucket: BucketDefinition,
    object: StoredObject,
    picture: Uint8Array,
    name: string,
  ): Promise<Variant> {
    const type = sniffImage(picture) ?? object.contentType
    const scope = { bucket, owner: null }
    const blob = await blobRegistry.stage(
      once(picture),
      { bytesMax: picture.length, size: picture.length, isUncounted: true as const },
      scope,
    )
    const row = { blob: blob.id, size: blob.size, etag: etagOf(blob.sha256), type }
    const isKept =
      variantCache.fits(bucket, row.size) &&
      (await database.write(async (tx) => {
        await tx.lock(`storage picture ${object.version}`)
        // The object may have been replaced meanwhile, and a picture of what is gone would stay for ever.
        const [there] = await tx.all(sql`SELECT version FROM ${tables.objects} WHERE bucket = ${bucket.name}
        AND key = ${object.key} AND version = ${object.version}${database.dialect.forUpdate}`)
        const known = await tx.all<{ variant: string; made: number }>(sql`SELECT variant, made FROM ${tables.derived}
        WHERE version = ${object.version} ORDER BY made`)
        if (!there || known.some((one) => one.variant === name)) return false
        let gone: readonly BlobPart[] = []
        const [oldest] = known
        if (oldest && known.length >= imageVariantsMax) {
          const ageMs = clock.now() - oldest.made
          // One of a time to come was made under a clock that was ahead.
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

  /** Keeps in mind what took too long, so that asking again and again does not take the processes. */
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
                const picture = await queue.enter(callerKey(caller), wanted, () => render(object, variant, wanted))
                return make(bucket, object, picture, name)
              }),
            signal,
          )
          .catch((error: unknown) => {
            throw signal.aborted ? clientClosedRequest() : refusalOf(error)
          }))
      const { blob, size, etag, type } = row
      return { key: object.key, createdAt: object.createdAt, contentType: type, size, etag, blobs: [[blob, size]] }
    },
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
