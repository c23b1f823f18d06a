/**
 * The storage feature: creates its parts in order of dependency and lists their endpoints. `admission` authenticates
 * callers and signed URLs, `objects` evaluates access rules, and the blobs engine stores bytes.
 */

import type { UserCaller } from '../../access/caller.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Blobs } from '../../engines/blobs/blobs.ts'
import type { Images } from '../../engines/images/images.ts'
import { sweepIntervalMs } from '../../limits/storage.ts'
import type { NamespaceHooks } from '../before-hooks.ts'
import type { Feature } from '../feature.ts'
import { createBlobRegistry } from './blobs/blob-registry.ts'
import { createGarbage } from './blobs/garbage.ts'
import { createLeases, type Leases } from './blobs/leases.ts'
import { createStaging } from './blobs/staging.ts'
import { createSweeper } from './blobs/sweeper.ts'
import { type BucketDefinitions, createBuckets } from './buckets.ts'
import { createFileEndpoints } from './endpoints.ts'
import { createImageVariants } from './images.ts'
import type { Store } from './migrations.ts'
import type { AppendFileChange } from './object-rows.ts'
import { createObjects } from './objects.ts'
import { createSignedUrlEndpoints } from './signed-url-endpoints.ts'
import { createSignedUrls } from './signed-urls.ts'
import { createAdmission } from './uploads/admission.ts'
import { createMultipart } from './uploads/multipart.ts'
import { createMultipartEndpoints } from './uploads/multipart-endpoints.ts'
import { createParts } from './uploads/parts.ts'
import { createTokens } from './uploads/tokens.ts'
import { createTus } from './uploads/tus.ts'
import { createReceiveBody } from './uploads/tus-body.ts'
import { createTusEndpoints } from './uploads/tus-endpoints.ts'
import { createUpload } from './uploads/upload.ts'
import { createUploadRows } from './uploads/upload-rows.ts'
import { createUploads } from './uploads/uploads.ts'
import { createUsageEndpoints } from './usage/endpoints.ts'
import { createUsageReport, type UserNames } from './usage/report.ts'
import { createVariantCache } from './variant-cache.ts'

export interface StorageDeps {
  readonly store: Store
  readonly blobs: Blobs
  readonly images: Images
  readonly buckets: () => BucketDefinitions
  /** Evaluates rules that read tables. */
  readonly ruleEvaluator: RuleEvaluator
  /** The hooks that run before files change; null without any. */
  readonly hooks: () => NamespaceHooks | null
  /** Appends a change of a file to the change log. */
  readonly appendChange: AppendFileChange
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
  /** The email and display name of each of these users that exists. */
  readonly namesOf: UserNames
  /** Whether the service key of this name is valid and has the scope. */
  readonly issuerPermits: (keyName: string, scope: string) => Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

export interface Storage extends Feature {
  /** Leases that keep released files for backups. */
  readonly leases: Leases
}

export function createStorage(deps: StorageDeps): Storage {
  const { store, blobs, clock, log, secret, issuerPermits, reloadUser, refreshClaims, publicUrl } = deps
  const buckets = createBuckets({ buckets: deps.buckets, ruleEvaluator: deps.ruleEvaluator, log })
  const tokens = createTokens(secret, () => clock.now())
  const admission = createAdmission({ store, buckets, tokens, reloadUser, refreshClaims, issuerPermits })
  const garbage = createGarbage({ store, blobs, clock, log })
  const blobRegistry = createBlobRegistry({
    store,
    blobs,
    garbage,
    staging: createStaging({ store, clock, log }),
    clock,
  })
  const variantCache = createVariantCache({ store, blobRegistry, buckets: deps.buckets, clock, log })
  const objects = createObjects({ ...deps, blobRegistry, variantCache })
  const shared = { store, objects, blobRegistry, admission }
  const uploadRows = createUploadRows(store, clock)
  const parts = createParts({ store, rows: uploadRows, blobRegistry })
  const uploads = createUploads(shared, uploadRows)
  const upload = createUpload(shared)
  const multipart = createMultipart(shared, uploads, parts)
  const tus = createTus({ ...shared, uploads, receive: createReceiveBody(blobRegistry, parts), clock })
  const imageVariants = createImageVariants({ store, blobs, blobRegistry, variantCache, images: deps.images, clock })
  const signedUrls = createSignedUrls({ tokens, objects, clock, publicUrl })
  return {
    name: 'storage',
    endpoints: [
      ...createFileEndpoints({ ...deps, buckets, admission, objects, upload, imageVariants }),
      ...createSignedUrlEndpoints({ buckets, signedUrls }),
      ...createMultipartEndpoints({ admission, multipart }),
      ...createTusEndpoints({ admission, tus }),
    ],
    dashboardEndpoints: createUsageEndpoints({ ...deps, usage: createUsageReport(store, deps.namesOf) }),
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
