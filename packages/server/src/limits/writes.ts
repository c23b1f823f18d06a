/** Bounds of what one request and one caller may write, and of the time it takes the event loop. */
import { KiB, MiB } from './units.ts'

/**
 * Bytes of a record as JSON. A body is at most 1 MiB, but updates could add fields without end; a page must be able to
 * hold at least one record.
 */
export const recordBytesMax = 4 * MiB
/**
 * Characters that one request writes to the change log: each record once, and what differed before. Larger changes by
 * filter are split with `limit`; without the bound, one small request could fill the disk.
 */
export const requestChangeCharsMax = 16 * MiB
/**
 * What one caller may write to change logs in a window: a megabyte a second is far beyond what a person causes, and far
 * below what fills a disk in an hour.
 */
export const writeBudgetBytes = 64 * MiB
export const writeBudgetWindowMs = 60_000
/** A caller's bytes are added up in the process until there are so many; only then do the nodes count together. */
export const writeBudgetStepBytes = 256 * KiB
/** Callers whose bytes are added up at once. */
export const writeBudgetCallersMax = 10_000
/** Answers above this are kept without their records under an `Idempotency-Key`. */
export const idempotencyAnswerCharsMax = 64 * KiB
/** Records a write reads first; what they are on average decides how many are read together after them. */
export const rowsReadAtOnceMin = 8
export const rowsReadAtOnceMax = 250
/** Characters of records read together: a millisecond of work. */
export const rowsReadAtOnceChars = MiB
/** The longest that one request occupies the event loop before others get it. */
export const eventLoopSliceMs = 10

/**
 * By how much a caller who cannot read a number may increment it: with no more than this no sum is out of range,
 * whatever is stored, so that a refusal reveals nothing.
 */
export const blindIncrementMax = Number.MAX_SAFE_INTEGER
