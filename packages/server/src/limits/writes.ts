/** Limits of the data that one request and one caller may write, and of the event-loop time it takes. */
import { KiB, MiB } from './units.ts'

/**
 * Bytes of a record as JSON. A body is at most 1 MiB, but repeated updates could add fields without bound. A page must
 * have room for at least one record.
 */
export const recordBytesMax = 4 * MiB
/**
 * Characters that one request appends to the change log: each record, and the delta to its previous state. Without the
 * bound, one small request by filter could fill the disk; larger changes are split with `limit`.
 */
export const requestChangeCharsMax = 16 * MiB
/**
 * Bytes that one caller may append to change logs per window. About 1 MiB/s is far more than a person causes, and far
 * less than fills a disk in an hour.
 */
export const writeBudgetBytes = 64 * MiB
export const writeBudgetWindowMs = 60_000
/** Bytes of a caller that a process accumulates before it adds them to the counter shared by all nodes. */
export const writeBudgetStepBytes = 256 * KiB
/** Callers whose bytes are accumulated at the same time. */
export const writeBudgetCallersMax = 10_000
/** Times in a row that a write is tried again because a record changed while its hooks ran; then it is a conflict. */
export const hookAttemptsMax = 5
/**
 * Times that a request runs the hooks of its writes. One is usual; each further write of one record whose hooks change
 * it takes another, and repeats the work of the request.
 */
export const hookPassesMax = 20
/** Requests that wait to change one row with hooks; each waits for the hooks of those before it. */
export const hookedRowWaitersMax = 1000
export const hookedRowWaitersMaxTotal = 10_000
/** How long a request waits for others that change its rows with hooks; a client that leaves stops waiting earlier. */
export const hookedRowWaitMs = 30_000
/** Larger responses are stored without their records under an `Idempotency-Key`. */
export const idempotencyResponseCharsMax = 64 * KiB
/** Records that a write reads first; their average size determines how many it reads at a time afterwards. */
export const rowsReadAtOnceMin = 8
export const rowsReadAtOnceMax = 250
/** Characters of records read at a time: a millisecond of work. */
export const rowsReadAtOnceChars = MiB
/**
 * Time that one request, or one group of writes, may occupy the event loop before it yields. A round of the loop may
 * have one of these, one batch of reads and one slice of expensive requests, and point reads wait for all of them.
 */
export const eventLoopSliceMs = 5
/** Time for which a group of writes waits while each round of the event loop adds to it: that of some 50 requests. */
export const writeGroupWaitMs = 2

/**
 * Maximum increment for a caller without read access. No such increment can overflow, whatever the stored value, so
 * that errors reveal nothing about it.
 */
export const blindIncrementMax = Number.MAX_SAFE_INTEGER

/**
 * Databases whose removals have a known bound (`removal-bounds`). Twice as many as the open instances and static
 * databases of a process; an evicted bound is read again.
 */
export const removalBoundsMax = 500

/** Versions follow the clock up to the year 2223 and then count, so that 10^15 of them remain exact in a double. */
export const clockVersionMax = 8e15

// Computed fields
/** Operations, constants and fields in one expression; one that shares parts counts them each time. */
export const computedNodesMax = 100
/** Computed fields of a table: each is computed in every write. */
export const computedFieldsMax = 50
/** UTF-16 units of a computed text; a longer one would be null. A few expressions must not fill a record. */
export const computedTextCharsMax = 64 * KiB
/** Decimals of `round`: a double has no more. */
export const roundDigitsMax = 15
/** Rows whose computed fields are computed again in one transaction. */
export const recomputedRowsMax = 200
/** Characters of the rows that are read for it at a time; a row has at most `recordBytesMax`. */
export const recomputedChars = MiB

// Effects of jobs
/** Result of an effect that is stored: the ids of the vectors that one request writes. */
export const effectResultCharsMax = 64 * KiB
/** How long responses of jobs' writes are kept at least: an attempt that has lost its lease repeats none. */
export const effectKeptMinMs = 60 * 60 * 1000
/** Pages of stored responses that one run of the housekeeping looks at per database. */
export const effectPagesMax = 100

// Imports and exports of records by the command line
/** Records of one request of an import, and characters of their JSON: well below the bound of a body. */
export const importBatchRecords = 200
export const importBatchChars = 512 * KiB
/** Faulty records that a run reports before it gives up. */
export const importFaultsMax = 100
/** Times that a request is repeated which the server is too busy to answer, and the longest pause before one. */
export const importAttemptsMax = 10
export const importPauseMs = 60_000
/** Matches of a search whose records are exported: each page searches again, in a reader thread, for some 200 ms. */
export const exportFoundMax = 100_000
/** Time limit of counting the matches of a search before an export or a bulk job. */
export const foundRowsCountedMs = 10_000
/** Records of one page of an export. */
export const exportPageRecords = 500
/** Bytes of one page of an export over HTTP: a few milliseconds to write as text. A larger record has a page alone. */
export const exportPageBytes = 512 * KiB
