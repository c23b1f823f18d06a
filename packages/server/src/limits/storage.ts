/** The numbers of files: blobs and the stores they are in, objects, uploads, pictures. Each as in `limits`. */
import { KiB, MiB } from './units.ts'

// Blobs
/** Enough of a file to tell its type: the marks that say so are within its first few hundred bytes. */
export const sniffBytes = 4 * KiB
/**
 * Bytes handed to the system in one write of a file. What Linux is given at once it wants in one piece of its page
 * cache, and larger pieces than this are hard to come by: on ext4, 6.18, a file of 1 MiB took 0.3 ms of the kernel in
 * writes of 64 KiB and 2 to 3 ms in larger ones, with which 150 files a second got through instead of 900.
 */
export const fileWriteBytesMax = 64 * KiB
/** Stores refuse parts below 5 MiB, and more than 10,000 of them; together these allow 78 GiB. */
export const s3PartBytes = 8 * MiB
export const s3PartsMax = 10_000
/** Pieces in which a part is read back from disk on its way to the store: all that it takes of memory. */
export const s3SpoolReadBytes = 256 * KiB
/** The store's answer to a request without a body, and its silence in the middle of one. It is next door. */
export const s3AnswerMs = 10_000
/** One part: 8 MiB at 280 KiB/s. Also the end of an upload, which stores take their time for. */
export const s3BodyMs = 30_000
/** Attempts at one exchange; a store answers 503 as a way to say "slower". */
export const s3AttemptsMax = 3
/** Pauses between attempts grow from the first to the last. */
export const s3RetryMinMs = 100
export const s3RetryMaxMs = 2000
/** Requests that get no answer for this long have the store probed: a large part takes its time. */
export const s3TickMs = 2000
/** How long a store that gives no answer may pause before uploads under way are given up. */
export const s3PauseMs = 3000
/** The most that stores list at once. */
export const s3ListKeysMax = 1000
/** Removals under way at once: the sweeper is in no hurry. */
export const s3RemovalsMax = 8

// Storage (SPEC "Limits", CONTRACT "Storage")
export const objectKeyBytesMax = KiB
/** S3's largest object, and what 10,000 parts of a reasonable size add up to. */
export const fileBytesMax = 5 * 1024 * 1024 * MiB
export const partBytesMax = 5 * 1024 * MiB
export const partNumberMax = 10_000
/** 10,000 parts with their tags are about 700 KB of JSON. */
export const completeBodyBytesMax = 2 * MiB
export const batchKeysMax = 100
export const signedUrlLifetimeMs = 60 * 60 * 1000
export const signedUrlLifetimeMaxMs = 7 * 24 * 60 * 60 * 1000
export const signedUploadLifetimeMs = 30 * 60 * 1000
/** A token with 4 KB of claims inside; it travels in the URL. */
export const storageTokenCharsMax = 12 * KiB
export const rangesMax = 8
/** Custom metadata as JSON; it is read with every object and sent with many. */
export const customMetadataBytesMax = 8 * KiB
/** With its prefix a name must still be a field's name. */
export const customMetadataNameCharsMax = 100
export const contentTypeCharsMax = 127
/** Fields of an upload form, of which four mean something. */
export const formFieldsMax = 16
export const formFieldBytesMax = 64 * KiB
/** Headers of one part. */
export const formHeadBytesMax = 16 * KiB
/** Of a form beside its file: fields, boundaries and headers. */
export const formOverheadBytesMax = 2 * MiB
/** Uploads in parts that one caller may have open in one bucket. */
export const openUploadsMax = 1000
export const uploadIdleMs = 7 * 24 * 60 * 60 * 1000
/** A single request body may take this long; far less than a staged blob is kept. */
export const uploadTimeoutMs = 24 * 60 * 60 * 1000
/** A staged blob is kept this long; it may be adopted up to `adoptMarginMs` before, so clocks may differ by as much. */
export const stagedBlobMs = 3 * 24 * 60 * 60 * 1000
export const adoptMarginMs = 24 * 60 * 60 * 1000
/**
 * Bytes of uploads under way are reserved in steps of at least so many, so that a client which declares a large body
 * and never sends it does not keep others from the quota of a bucket. Smaller bodies are reserved at once.
 */
export const reservedStepBytesMin = 8 * MiB
/**
 * Bytes that one user may have under way in a bucket without a quota, and that all may have anywhere: with the parts
 * of large files at the full rate of a disk, minutes of writing. The only upload of a user is never refused.
 */
export const stagedUserBytesMax = 64 * 1024 * MiB
export const stagedBytesMax = 256 * 1024 * MiB
/** Uploads under way may have this much under any quota: small files uploaded at once must not refuse each other. */
export const stagedQuotaBytesMin = MiB
/** A reservation that its node does not renew lapses: that of a node that was killed, for instance. */
export const reservationLivesMs = 5 * 60_000
export const reservationRenewMs = 60_000
/** Released blobs are kept this long for downloads under way, unless they exceed the bounds below. */
export const garbageGraceMs = 24 * 60 * 60 * 1000
/**
 * Released bytes kept per user and per bucket. A quota is the bound where there is one, so that disk use is at most
 * twice that; a bound below `garbageBytesMin` would cut off every download of an overwritten file.
 */
export const garbageBytesMin = 16 * MiB
export const garbageUserBytesMax = 256 * MiB
export const garbageBucketBytesMax = 1024 * MiB
/** Released blobs kept: a file system takes 4 KiB and an inode for each, so these are 40 MiB and 200 MiB. */
export const garbageUserBlobsMax = 10_000
export const garbageBucketBlobsMax = 50_000
/** Owners over their bounds that one pass of the sweeper reads; the next step reads more. */
export const garbageOwnersMax = 100
/** Blobs and uploads that one go of the sweeper removes. */
export const sweepRowsMax = 500
export const sweepIntervalMs = 60_000
/** Looking for blobs without a row reads the whole store, and finds any only where a database lost its last commits. */
export const strayScanIntervalMs = 24 * 60 * 60 * 1000
/** A piece of a resumable upload: what a broken connection can cost. Larger files have larger pieces. */
export const tusChunkBytes = 16 * MiB
/** Streamed answers up to this size are read first, so that they can say their length. */
export const bufferedAnswerBytes = MiB

// Image transformations
export const imageSideMax = 4096
/** A picture of a large camera has 100 million; decoding one takes four bytes for each. */
export const imagePixelsMax = 64 * 1024 * 1024
/**
 * Pixels of a result by its format, so that noise, the worst case, is encoded within half of the deadline: measured on
 * one core, 4 Mpx of AVIF take 2.7 s and 16 Mpx of WebP 3.4 s, 16 Mpx of PNG 1.4 s, 64 Mpx of JPEG 2.1 s.
 */
export const imageFormatPixelsMax = {
  jpeg: imagePixelsMax,
  png: 32 * 1024 * 1024,
  webp: 16 * 1024 * 1024,
  gif: 4 * 1024 * 1024,
  avif: 4 * 1024 * 1024,
} as const
export const imageSourceBytesMax = 64 * MiB
/** A PNG of noise has three bytes per pixel; a result is held in memory while it is stored. */
export const imageOutputBytesMax = 64 * MiB
/** A picture that takes longer ends with its process. */
export const imageTimeoutMs = 10_000
/** A variant that took too long is not tried again for this long. */
export const imageSlowRetryMs = 60_000
/** Variants that took too long and are remembered; about 150 bytes each. */
export const imageSlowMax = 1000
/** Processes that render at once; each takes one core and up to `imageProcessBytesMax`. */
export const imagesAtOnceMax = 2
/** Waiting in the queue: beyond it 503, and 429 for one caller, who may be a page of thumbnails. */
export const imagesWaitingMax = 256
export const imagesWaitingPerCallerMax = 64
/** Longest wait in the queue; with `imageTimeoutMs` it stays below what proxies wait for. */
export const imageWaitMs = 20_000
/** Decoding 64 Mpx takes 256 MiB, and resizing and encoding as much again; beyond it the process ends itself. */
export const imageProcessBytesMax = 1024 * MiB
/** How often a process compares its memory with that. */
export const imageProcessPollMs = 50
/** Below the server (0) and the SQL processes (5): pictures are the first to wait for a processor. */
export const imageProcessNiceness = 10
/** An idle process is about 70 MB; starting one takes a fifth of a second. */
export const imageProcessIdleMs = 60_000
/** Kept per object; another one takes the place of the oldest, once that is `variantCachedMs` old. */
export const imageVariantsMax = 64
/**
 * A variant stays at least this long, so that whoever asks for ever new ones leaves no more of them behind in the time
 * that what is removed is still there for (`garbageGraceMs`).
 */
export const variantCachedMs = 24 * 60 * 60 * 1000
/**
 * Bytes of kept variants of a bucket without a quota, and of all buckets; with a quota it is the bound, but at least
 * `garbageBytesMin`. Beyond a bound the least recently used go: they are made again when they are asked for.
 */
export const variantBucketBytesMax = 1024 * MiB
export const variantBytesMax = 8 * 1024 * MiB
/** The time of a variant's last use is written again once it is this old: a read is seldom a write. */
export const variantUsedStepMs = 60 * 60 * 1000
/** A picture that is not kept is there for this long, to be sent. */
export const uncachedVariantMs = 10 * 60 * 1000

/**
 * Files read at a time where a rule asks other tables, so that each must be judged: with the most custom metadata they
 * are 1 MiB, which takes about 10 ms to parse.
 */
export const judgedObjectsAtOnce = 128
/** Files judged for one page of a list: some hundred milliseconds; then the page ends early, with a cursor. */
export const judgedObjectsMax = 10_000
