/**
 * Storage. Maps endpoint calls to operations on objects and uploads. `admission` authenticates callers and signed URLs,
 * `objects` evaluates access rules, and the blobs engine stores bytes.
 */

import type { UserCaller } from '../../access/caller.ts'
import { required } from '../../access/check.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Blobs } from '../../engines/blobs/blobs.ts'
import type { Images } from '../../engines/images/images.ts'
import { ApiError, badRequest, invalidField } from '../../errors.ts'
import type { Call } from '../../http/endpoint.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import { sweepIntervalMs } from '../../limits/storage.ts'
import type { Feature } from '../feature.ts'
import { createBlobRegistry } from './blobs/blob-registry.ts'
import { createGarbage } from './blobs/garbage.ts'
import { createLeases, type Leases } from './blobs/leases.ts'
import { createStaging } from './blobs/staging.ts'
import { createSweeper } from './blobs/sweeper.ts'
import { type BucketCall, type BucketDefinitions, createBuckets } from './buckets.ts'
import { sendContent } from './download.ts'
import { storageEndpoints } from './endpoints.ts'
import { createImageVariants, variantOf } from './images.ts'
import { parseKey } from './keys.ts'
import { parseMetadata } from './metadata.ts'
import type { Store } from './migrations.ts'
import { createObjects, type StoredObject } from './objects.ts'
import { createSignedUrls } from './signed-urls.ts'
import { createAdmission } from './uploads/admission.ts'
import { createMultipart } from './uploads/multipart.ts'
import { createTokens } from './uploads/tokens.ts'
import { createTus } from './uploads/tus.ts'
import { createUpload } from './uploads/upload.ts'
import { uploadEndpoints } from './uploads/upload-endpoints.ts'
import { createUploads } from './uploads/uploads.ts'
import { createVariantCache } from './variant-cache.ts'

export interface StorageDeps {
  readonly store: Store
  readonly blobs: Blobs
  readonly images: Images
  readonly buckets: () => BucketDefinitions
  /** Evaluates rules that read tables. */
  readonly ruleEvaluator: RuleEvaluator
  /** Signs URLs and seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes. */
  readonly responseBytes: () => number
  /**
   * The user with the current role and claims; null for a disabled or deleted user. Signed URLs are honored while their
   * issuer is active.
   */
  readonly reloadUser: (user: UserCaller) => Promise<UserCaller | null>
  /** The user with the current role and claims. Rejects with 401 after the session has ended. */
  readonly refreshClaims: (user: UserCaller) => Promise<UserCaller>
  /** Public base URL without a trailing slash; null if it is not configured. */
  readonly publicUrl: () => string | null
  /** Whether the service key of this name is valid and has the scope. */
  readonly keyPermits: (keyName: string, scope: string) => boolean
  readonly clock: Clock
  readonly log: Log
}

export interface Storage extends Feature {
  /** Leases that keep released files for backups. */
  readonly leases: Leases
}

/** The public representation of an object. */
const show = ({ key, size, contentType, customMetadata, createdAt, etag, uploadedBy }: StoredObject) => ({
  key,
  size,
  httpMetadata: { contentType },
  customMetadata,
  uploaded: createdAt,
  contentType,
  etag,
  uploadedBy,
})

/**
 * The response to a metadata update by a caller without read permission: only the fields that the request contained.
 */
const showSent = ({ key, createdAt, customMetadata }: StoredObject, sent: object) => ({
  key,
  customMetadata: Object.fromEntries(Object.entries(customMetadata).filter(([name]) => Object.hasOwn(sent, name))),
  uploaded: createdAt,
})

export function createStorage(deps: StorageDeps): Storage {
  const { store, blobs, clock, log, secret, keyPermits, reloadUser, refreshClaims, publicUrl } = deps
  const buckets = createBuckets({ buckets: deps.buckets, ruleEvaluator: deps.ruleEvaluator, log })
  const tokens = createTokens(secret, () => clock.now())
  const admission = createAdmission({ store, buckets, tokens, reloadUser, refreshClaims, keyPermits })
  const garbage = createGarbage({ store, blobs, clock, log })
  const blobRegistry = createBlobRegistry({
    store,
    blobs,
    garbage,
    staging: createStaging({ store, clock, log }),
    clock,
  })
  const variantCache = createVariantCache({ store, blobRegistry, buckets: deps.buckets, clock, log })
  const objects = createObjects({ store, blobRegistry, variantCache, clock })
  const shared = { store, objects, blobRegistry, admission }
  const uploads = createUploads(shared, clock)
  const upload = createUpload(shared)
  const multipart = createMultipart(shared, uploads)
  const tus = createTus(shared, uploads, clock)
  const imageVariants = createImageVariants({ store, blobs, blobRegistry, variantCache, images: deps.images, clock })
  const signedUrls = createSignedUrls({ tokens, objects, clock, publicUrl })
  const cursors = createListCursors<[key: string]>(secret, 'storage list')

  const resolve = ({ params, caller }: Call): BucketCall => buckets.resolve(params.bucket ?? '', caller)
  const keyOf = ({ params }: Call): string => parseKey(params.key ?? '')
  const authorizeUpload = ({ params, caller, query }: Call<{ token?: string | undefined; key?: string | undefined }>) =>
    admission.authorizeUpload(params.bucket ?? '', caller, query)

  function parsePrefix(text: string): string {
    if (!text.isWellFormed() || text.includes('\0')) throw invalidField('prefix', 'pattern', 'must be text without NUL')
    return text
  }

  const objectEndpoints = storageEndpoints({
    async upload(call) {
      return json(show(await upload(await authorizeUpload(call), call)), 201)
    },

    async download(call) {
      const key = keyOf(call)
      const { call: reader, token } = await admission.authorizeDownload(
        call.params.bucket ?? '',
        call.caller,
        key,
        call.query.token,
      )
      const variant = variantOf(call.query)
      if (variant && !reader.bucket.images) throw badRequest('Image transformations are not enabled for this bucket')
      const object = await objects.getReadable(reader, key, token ?? undefined)
      const content = variant
        ? await imageVariants.derive(reader.bucket, object, variant, {
            caller: call.caller,
            signal: call.signal,
          })
        : object
      const cache = token ? { cacheSeconds: Math.floor((token.expires - clock.now()) / 1000) } : {}
      return sendContent(blobs, content, { method: call.method, headers: call.headers, ...cache })
    },

    async list(call) {
      const bucketCall = resolve(call)
      const bucket = bucketCall.bucket.name
      const { limit } = call.query
      const prefix = parsePrefix(call.query.prefix ?? '')
      const after = call.query.cursor === undefined ? null : cursors.parse([bucket, prefix], call.query.cursor)[0]
      const { objects: found, next } = await objects.list(bucketCall, { prefix, after, limit })
      const listed = found.map(({ key, size, createdAt, contentType, etag }) => ({
        key,
        size,
        uploaded: createdAt,
        contentType,
        etag,
      }))
      // Each object appears in the response twice (`objects` and `files`).
      const { items: shown, isCut } = await fitItems(listed, itemBytesMax(deps.responseBytes()) / 2)
      const last = isCut ? (shown.at(-1)?.key ?? null) : next
      return json({
        objects: shown,
        files: shown,
        truncated: last !== null,
        cursor: last === null ? null : cursors.format([bucket, prefix], [last]),
      })
    },

    async delete(call) {
      await objects.remove(resolve(call), keyOf(call))
      return json({ ok: true })
    },

    async deleteBatch(call) {
      const bucket = resolve(call)
      required(bucket.permissions.delete(), bucket.caller)
      const keys = [...new Set(call.body.keys)]
      const results = await Promise.all(
        keys.map(async (key) => {
          try {
            await objects.remove(bucket, parseKey(key))
            return { key, error: null }
          } catch (error) {
            if (error instanceof ApiError && error.status < 500) return { key, error: error.message }
            throw error
          }
        }),
      )
      return json({
        deleted: results.filter(({ error }) => error === null).map(({ key }) => key),
        failed: results.filter(({ error }) => error !== null),
      })
    },

    metadata: async (call) => json(show(await objects.getReadable(resolve(call), keyOf(call)))),

    async updateMetadata(call) {
      const changes = parseMetadata(call.body, 'customMetadata')
      const merge = (known: object) => parseMetadata({ ...known, ...changes }, 'customMetadata')
      const { object, isReadable } = await objects.setMetadata(resolve(call), keyOf(call), merge)
      return json(isReadable ? show(object) : showSent(object, changes))
    },

    signedUrl: async (call) => json(await signedUrls.read(resolve(call), call, call.body)),
    signedUrls: async (call) => json({ urls: await signedUrls.readMany(resolve(call), call, call.body) }),
    signedUploadUrl: async (call) => json(await signedUrls.write(resolve(call), call, call.body)),
  })

  const partEndpoints = uploadEndpoints({
    async create(call) {
      const { id, key } = await multipart.create(await authorizeUpload(call), call.body)
      return json({ uploadId: id, key })
    },
    async uploadPart(call) {
      const { number, etag } = await multipart.uploadPart(await authorizeUpload(call), call, call.query)
      return json({ partNumber: number, etag })
    },
    complete: async (call) => json(show(await multipart.complete(await authorizeUpload(call), call.body))),
    async abort(call) {
      await multipart.abort(await authorizeUpload(call), call.body)
      return json({ ok: true })
    },
    async parts(call) {
      const { uploadId = '' } = call.params
      const parts = await multipart.parts(await authorizeUpload(call), uploadId, call.query.key)
      return json({
        uploadId,
        key: call.query.key,
        parts: parts.map(({ number, size, etag }) => ({ partNumber: number, size, etag })),
      })
    },
    tusOptions: tus.options,
    tusCreate: async (call) => tus.create(await authorizeUpload(call), call, call.query),
    tusHead: async (call) => tus.head(await authorizeUpload(call), call),
    tusPatch: async (call) => tus.patch(await authorizeUpload(call), call),
    tusTerminate: async (call) => tus.terminate(await authorizeUpload(call), call),
  })

  return {
    name: 'storage',
    endpoints: [...objectEndpoints, ...partEndpoints],
    jobs: [
      {
        name: 'storage.sweep',
        intervalMs: sweepIntervalMs,
        run: createSweeper({ store, blobs, garbage, uploads, buckets: deps.buckets, clock }),
      },
    ],
    leases: createLeases(store, clock),
  }
}
