/**
 * Pictures in other sizes and formats, made when they are first asked for and kept beside the object. Bounded in every
 * way that costs: pixels, bytes, time, how many are made at once and how many are kept.
 */

import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/hash.ts'
import type { Blobs } from '../../engines/blobs.ts'
import { sql } from '../../engines/sql-text.ts'
import { ApiError, badRequest, invalidField, payloadTooLarge, unavailable } from '../../errors.ts'
import {
  imagePixelsMax,
  imageSeconds,
  imageSideMax,
  imageSourceBytesMax,
  imagesAtOnceMax,
  imagesWaitingMax,
  imageVariantsMax,
  unkeptPictureMs,
  variantKeptMs,
} from '../../limits-storage.ts'
import type { BlobRows } from './blob-rows.ts'
import { sniffImage } from './content.ts'
import { type Content, readSpan, streamOf } from './download.ts'
import type { StoredObject } from './objects.ts'
import type { Store } from './schema.ts'
import { etagOf } from './upload.ts'

const formats = ['webp', 'avif', 'jpeg', 'png'] as const
const fits = ['cover', 'contain', 'inside', 'outside', 'fill'] as const
type Format = (typeof formats)[number]
type Fit = (typeof fits)[number]

/** How a picture is wanted. */
export interface Variant {
  readonly width: number | null
  readonly height: number | null
  readonly fit: Fit
  /** Null for the original's own. */
  readonly format: Format | null
}

export interface VariantQuery {
  readonly width?: string | undefined
  readonly height?: string | undefined
  readonly fit?: string | undefined
  readonly format?: string | undefined
}

/** What the query asks for; null where it asks for the file as it is. Throws 400 naming the parameter. */
export function parseVariant({ width, height, fit, format }: VariantQuery): Variant | null {
  if (width === undefined && height === undefined && format === undefined) return null
  const side = (name: string, text: string | undefined): number | null => {
    if (text === undefined) return null
    const value = /^\d{1,6}$/.test(text) ? Number(text) : 0
    if (value < 1) throw invalidField(name, 'min', 'must be a whole number of pixels, at least 1')
    if (value > imageSideMax) throw invalidField(name, 'max', `must be at most ${imageSideMax}`)
    return value
  }
  const oneOf = <T extends string>(name: string, text: string, known: readonly T[]): T => {
    const found = known.find((one) => one === text)
    if (!found) throw invalidField(name, 'enum', `must be one of ${known.join(', ')}`)
    return found
  }
  return {
    width: side('width', width),
    height: side('height', height),
    fit: fit === undefined ? 'cover' : oneOf('fit', fit, fits),
    format: format === undefined ? null : oneOf('format', format === 'jpg' ? 'jpeg' : format, formats),
  }
}

interface DerivedRow {
  readonly blob: string
  readonly size: number
  readonly etag: string
  readonly type: string
}

export interface Images {
  /** The object as a variant. Throws 400 for what is no picture, 413 for one too large, 503 with too many waiting. */
  derive(bucket: string, object: StoredObject, variant: Variant): Promise<Content>
}

/** The types sharp reads and we send as pictures. */
const readable = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])

interface Sides {
  readonly width: number
  readonly height: number
}

/** Pixels of what a variant makes of a picture: one side alone, or `outside`, leaves the other to the picture. */
function pixelsOf({ width, height, fit }: Variant, of: Sides): number {
  if (width !== null && height !== null && fit !== 'outside') return width * height
  if (fit === 'fill') return (width ?? of.width) * (height ?? of.height)
  const scale = Math.max((width ?? 0) / of.width, (height ?? 0) / of.height) || 1
  return of.width * of.height * (fit === 'inside' ? Math.min(scale, 1) : scale) ** 2
}

async function render(source: Uint8Array, variant: Variant): Promise<Uint8Array> {
  const { width, height, fit, format } = variant
  // Loaded when it is first needed: few servers transform pictures, and it is a large library.
  const { default: sharp } = await import('sharp')
  const image = sharp(source, { limitInputPixels: imagePixelsMax, failOn: 'error', sequentialRead: true, pages: 1 })
  const { autoOrient: oriented } = await image.metadata()
  if (pixelsOf(variant, oriented) > imagePixelsMax) throw badRequest('The picture would have too many pixels')
  const size = { ...(width === null ? {} : { width }), ...(height === null ? {} : { height }) }
  const sized = image.autoOrient().resize({ ...size, fit, withoutEnlargement: fit === 'inside' })
  const formed = format === null ? sized : sized.toFormat(format)
  return formed.timeout({ seconds: imageSeconds }).toBuffer()
}

export function createImages(deps: { store: Store; blobs: Blobs; blobRows: BlobRows; clock: Clock }): Images {
  const { store, blobs, blobRows, clock } = deps
  const { database, tables } = store
  const running = new Map<string, Promise<DerivedRow>>()
  const waiting: (() => void)[] = []
  let atWork = 0

  /** Takes turns: a picture costs memory and cores that others need too. */
  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (atWork >= imagesAtOnceMax) {
      if (waiting.length >= imagesWaitingMax) throw unavailable()
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else atWork += 1
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else atWork -= 1
    }
  }

  const find = async (version: string, name: string): Promise<DerivedRow | null> => {
    const [row] = await database.all<DerivedRow>(sql`SELECT blob, size, etag, type FROM ${tables.derived}
      WHERE version = ${version} AND variant = ${name}`)
    return row ?? null
  }

  async function make(bucket: string, object: StoredObject, variant: Variant, name: string): Promise<DerivedRow> {
    const source = await readSpan(blobs, object.blobs, { start: 0, end: object.size })
    const original = await new Response(streamOf(source)).bytes()
    // What the bytes are decides, not what they were said to be: other readers of the library are not for strangers.
    if (!readable.has(sniffImage(original) ?? '')) throw badRequest('The file is not a picture')
    const picture = await render(original, variant).catch((cause: unknown) => {
      if (cause instanceof ApiError) throw cause
      throw Object.assign(badRequest('The file cannot be read as a picture'), { cause })
    })
    const type = sniffImage(picture) ?? object.contentType
    const blob = await blobRows.stage(once(picture), { bytesMax: picture.length, size: picture.length })
    const row = { blob: blob.id, size: blob.size, etag: etagOf(blob.sha256), type }
    const isKept = await database.write(async (tx) => {
      const turn = database.dialect.lock(`storage picture ${object.version}`)
      if (turn) await tx.all(turn)
      // The object may have been replaced meanwhile, and a picture of what is gone would stay for ever.
      const [there] = await tx.all(sql`SELECT version FROM ${tables.objects} WHERE bucket = ${bucket}
        AND key = ${object.key} AND version = ${object.version}${database.dialect.forUpdate}`)
      const kept = await tx.all<{
        variant: string
        blob: string
        made: number
      }>(sql`SELECT variant, blob, made FROM ${tables.derived}
        WHERE version = ${object.version} ORDER BY made`)
      if (!there || kept.some((one) => one.variant === name)) return false
      const [oldest] = kept
      if (oldest && kept.length >= imageVariantsMax) {
        if (clock.now() - oldest.made < variantKeptMs) return false
        await tx.run(
          sql`DELETE FROM ${tables.derived} WHERE version = ${object.version} AND variant = ${oldest.variant}`,
        )
        await blobRows.release(tx, [oldest.blob])
      }
      await blobRows.adopt(tx, [blob.id])
      await tx.run(sql`INSERT INTO ${tables.derived} (version, variant, blob, size, etag, type, made)
        VALUES (${object.version}, ${name}, ${row.blob}, ${row.size}, ${row.etag}, ${type}, ${clock.now()})`)
      return true
    })
    if (isKept) return row
    await blobRows.abandon(blob.id, unkeptPictureMs)
    return (await find(object.version, name)) ?? row
  }

  return {
    async derive(bucket, object, variant) {
      if (!readable.has(object.contentType)) throw badRequest('The file is not a picture')
      if (object.size > imageSourceBytesMax) throw payloadTooLarge(imageSourceBytesMax)
      const name = sha256(JSON.stringify([variant.width, variant.height, variant.fit, variant.format]))
      const id = `${object.version} ${name}`
      let row = await find(object.version, name)
      if (!row) {
        const making = running.get(id) ?? inTurn(() => make(bucket, object, variant, name))
        running.set(id, making)
        row = await making.finally(() => running.delete(id))
      }
      const { blob, size, etag, type } = row
      return { key: object.key, createdAt: object.createdAt, contentType: type, size, etag, blobs: [[blob, size]] }
    },
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
