/** Limits of storage: blobs and blob stores, objects, uploads, image transformations. */
import { KiB, MiB } from './units.ts'

// Blobs
/** Bytes needed to detect a file's type: signatures are within its first few hundred bytes. */
export const sniffBytes = 4 * KiB
/**
 * Bytes per write call. Linux allocates a contiguous piece of page cache for each write, and larger pieces are scarce:
 * on ext4, Linux 6.18, writing a file of 1 MiB took 0.3 ms of kernel time in writes of 64 KiB and 2 to 3 ms in larger
 * ones, which reduced throughput from 900 to 150 files per second.
 */
export const fileWriteBytesMax = 64 * KiB
/** S3 rejects parts below 5 MiB and more than 10,000 parts; together these allow files of 78 GiB. */
export const s3PartBytes = 8 * MiB
export const s3PartsMax = 10_000
/** Chunk size for reading a spooled part from disk on its way to the store; all the memory that a part takes. */
export const s3SpoolReadBytes = 256 * KiB
/** Timeout for the response to a request without a body, and for a stall within a response. */
export const s3AnswerMs = 10_000
/** Timeout for one part: 8 MiB at 280 KiB/s. Also for completing an upload, which can take long. */
export const s3BodyMs = 30_000
/** Attempts per request; S3 returns 503 to throttle clients. */
export const s3AttemptsMax = 3
/** Backoff between attempts, from first to last. */
export const s3RetryMinMs = 100
export const s3RetryMaxMs = 2000
/** Requests without a response for this long cause a probe of the store: large parts take their time. */
export const s3TickMs = 2000
/** Time without a response from the store after which uploads in progress are aborted. */
export const s3PauseMs = 3000
/** S3's largest page of a listing. */
export const s3ListKeysMax = 1000
/** Concurrent removals; the sweeper is not urgent. */
export const s3RemovalsMax = 8

// Objects and uploads
export const objectKeyBytesMax = KiB
/** S3's largest object. */
export const fileBytesMax = 5 * 1024 * 1024 * MiB
export const partBytesMax = 5 * 1024 * MiB
export const partNumberMax = 10_000
/** 10,000 parts with their tags are about 700 KB of JSON. */
export const completeBodyBytesMax = 2 * MiB
export const batchKeysMax = 100
export const signedUrlLifetimeMs = 60 * 60 * 1000
export const signedUrlLifetimeMaxMs = 7 * 24 * 60 * 60 * 1000
export const signedUploadLifetimeMs = 30 * 60 * 1000
/** A token with 4 KB of claims; it is part of the URL. */
export const storageTokenCharsMax = 12 * KiB
export const rangesMax = 8
/** Custom metadata as JSON; read with every object and returned with many. */
export const customMetadataBytesMax = 8 * KiB
/** With its prefix, a name must be a valid field name. */
export const customMetadataNameCharsMax = 100
export const contentTypeCharsMax = 127
/** Fields of an upload form, of which four are used. */
export const formFieldsMax = 16
export const formFieldBytesMax = 64 * KiB
/** Headers of one part. */
export const formHeadBytesMax = 16 * KiB
/** Overhead of a form besides its file: fields, boundaries and headers. */
export const formOverheadBytesMax = 2 * MiB
/** Open upload sessions per caller and bucket. */
export const openUploadsMax = 1000
export const uploadIdleMs = 7 * 24 * 60 * 60 * 1000
/** Longest duration of a request body; far below the time that staged blobs are kept. */
export const uploadTimeoutMs = 24 * 60 * 60 * 1000
/** Staged blobs are kept this long and can be adopted until `adoptMarginMs` before, which tolerates clock skew. */
export const stagedBlobMs = 3 * 24 * 60 * 60 * 1000
export const adoptMarginMs = 24 * 60 * 60 * 1000
/**
 * Smallest step in which bytes of uploads in progress are reserved, so that a client that declares a large body and
 * never sends it does not block the quota of a bucket. Smaller bodies are reserved at once.
 */
export const reservedStepBytesMin = 8 * MiB
/**
 * Bytes in progress per user in a bucket without a quota, and for all users: minutes of writing at full disk
 * throughput. A user's only upload is never rejected.
 */
export const stagedUserBytesMax = 64 * 1024 * MiB
export const stagedBytesMax = 256 * 1024 * MiB
/** Uploads under way may have this much under any quota: small files uploaded at once must not refuse each other. */
export const stagedQuotaBytesMin = MiB
/** A reservation expires unless its node renews it, for example after the node was killed. */
export const reservationLivesMs = 5 * 60_000
export const reservationRenewMs = 60_000
/** Released blobs are kept this long for downloads in progress, within the bounds below. */
export const garbageGraceMs = 24 * 60 * 60 * 1000
/**
 * Released bytes kept per user and per bucket. A quota, where declared, is the bound, so that disk use is at most twice
 * the quota; a bound below `garbageBytesMin` would abort every download of an overwritten file.
 */
export const garbageBytesMin = 16 * MiB
export const garbageUserBytesMax = 256 * MiB
export const garbageBucketBytesMax = 1024 * MiB
/** Number of released blobs kept: a file system uses 4 KiB and an inode for each, so these are 40 MiB and 200 MiB. */
export const garbageUserBlobsMax = 10_000
export const garbageBucketBlobsMax = 50_000
/** Owners over their bounds per page of the sweeper. */
export const garbageOwnersMax = 100
/** Blobs and uploads removed in one step of the sweeper. */
export const sweepRowsMax = 500
export const sweepIntervalMs = 60_000
/**
 * Interval of the scan for blobs without a row. It reads the complete store and finds some only after a database has
 * lost its last commits.
 */
export const strayScanIntervalMs = 24 * 60 * 60 * 1000
/** Chunk of a resumable upload: what a lost connection can cost. Larger files have larger chunks. */
export const tusChunkBytes = 16 * MiB
/** Streamed responses up to this size are buffered, so that they have a `Content-Length`. */
export const bufferedAnswerBytes = MiB
/**
 * Longest content of a file that is read into memory. The runtime, which reads it at once as well, would send it in
 * seven system calls. From 16 KiB on it sends each header of a response from memory alone.
 */
export const readFileBytes = 14 * KiB

// Image transformations
export const imageSideMax = 4096
/** A large camera produces 100 million pixels; decoding takes four bytes per pixel. */
export const imagePixelsMax = 64 * 1024 * 1024
/**
 * Pixels of a result by format, so that noise, the worst case, is encoded within half of the timeout: on one core, 4
 * Mpx of AVIF take 2.7 s, 16 Mpx of WebP 3.4 s, 16 Mpx of PNG 1.4 s, 64 Mpx of JPEG 2.1 s.
 */
export const imageFormatPixelsMax = {
  jpeg: imagePixelsMax,
  png: 32 * 1024 * 1024,
  webp: 16 * 1024 * 1024,
  gif: 4 * 1024 * 1024,
  avif: 4 * 1024 * 1024,
} as const
export const imageSourceBytesMax = 64 * MiB
/** A PNG of noise has three bytes per pixel; a result is in memory while it is stored. */
export const imageOutputBytesMax = 64 * MiB
/** A rendering that takes longer is terminated with its process. */
export const imageTimeoutMs = 10_000
/** Time for which a variant that timed out is rejected without another attempt. */
export const imageSlowRetryMs = 60_000
/** Remembered variants that timed out; about 150 bytes each. */
export const imageSlowMax = 1000
/** Rendering processes; each uses one core and up to `imageProcessBytesMax`. */
export const imagesAtOnceMax = 2
/** Queue length: 503 beyond it, and 429 beyond the bound per caller, which allows for a page of thumbnails. */
export const imagesWaitingMax = 256
export const imagesWaitingPerCallerMax = 64
/** Longest wait in the queue; with `imageTimeoutMs` below common proxy timeouts. */
export const imageWaitMs = 20_000
/** Decoding 64 Mpx takes 256 MiB, and resizing and encoding as much again; a process beyond it terminates itself. */
export const imageProcessBytesMax = 1024 * MiB
/** Interval of a process's memory check. */
export const imageProcessPollMs = 50
/** Below the server (0) and the SQL processes (5): rendering yields the CPU first. */
export const imageProcessNiceness = 10
/** An idle process is about 70 MB; starting one takes a fifth of a second. */
export const imageProcessIdleMs = 60_000
/** Cached variants per object; a further one replaces the oldest if that is older than `variantCachedMs`. */
export const imageVariantsMax = 64
/**
 * Minimum time that a variant is cached, so that a client that requests ever new variants leaves at most
 * `imageVariantsMax` of them within the grace period of removed blobs (`garbageGraceMs`).
 */
export const variantCachedMs = 24 * 60 * 60 * 1000
/**
 * Bytes of cached variants per bucket without a quota, and overall; a quota, where declared, is the bound, but at least
 * `garbageBytesMin`. The least recently used are evicted.
 */
export const variantBucketBytesMax = 1024 * MiB
export const variantBytesMax = 8 * 1024 * MiB
/** A variant's last-used time is updated only once it is this old, so that reads rarely write. */
export const variantUsedStepMs = 60 * 60 * 1000
/** An uncached variant exists for this long, to be sent. */
export const uncachedVariantMs = 10 * 60 * 1000

/**
 * Files per batch when a rule reads other tables and is evaluated per file: with the most custom metadata they are 1
 * MiB, which takes about 10 ms to parse.
 */
export const judgedObjectsAtOnce = 128
/** Files evaluated for one page of a list: some hundred milliseconds; then the page ends early with a cursor. */
export const judgedObjectsMax = 10_000

// Usage
/** Users in one page of the usage of a bucket: what a page of the dashboard shows without scrolling far. */
export const usersOfUsageDefault = 20
export const usersOfUsageMax = 200
