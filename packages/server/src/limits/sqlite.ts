/** Bounds of the embedded engine: write-ahead logs, open instances, commit groups, reader threads, disk faults. */
import { KiB, MiB } from './units.ts'

// The embedded engine
/** Prepared statements kept per connection: a few shapes per endpoint and table. */
export const statementCacheEntriesMax = 500
/** Operations that may share one commit; bounds how long one group holds the event loop. */
export const groupCommitOperationsMax = 256
/** Writes waiting for a group; beyond it a write is refused with 503 rather than queued without end. */
export const writeQueueOperationsMax = 10_000
/**
 * Size of a write-ahead log at which it is checkpointed, off the main thread, and to which it is cut when it starts
 * over. Not less: a log that is overwritten instead of grown makes a sync cheaper.
 */
export const walCheckpointBytes = 16 * MiB
/** The same for each instance: hundreds of them are open at once, most with some KiB of data. */
export const walInstanceCheckpointBytes = MiB
/** Log bytes, in multiples of the size above, beyond which writers wait for the checkpoint under way. */
export const walPauseFactor = 8
/** Without writes for this long, a database's log is checkpointed and emptied: the data is in its file alone. */
export const walQuietMs = 60_000
/** How often open databases are checked for that. */
export const walQuietCheckMs = 10_000
/** Instance databases kept open at most; about 100 KiB each. The process's limit on file handles may allow fewer. */
export const openInstancesMax = 200
/** File handles of an open database: two connections with their logs, the log's index, and the log for its sync. */
export const handlesPerDatabase = 6
/** Of the process's handles, the part that instances may have; the others are for sockets, files and processes. */
export const instanceHandlesShare = 1 / 4
/** File handles kept for files that are open for the length of a request, where connections have taken all others. */
export const reservedHandles = 8
/** Fewer would have every request open its database, however few handles there are. */
export const openInstancesMin = 4
/** Page cache of a static database's connection. */
export const sqliteCacheKiB = 64 * KiB
export const sqliteInstanceCacheKiB = 512
/** Filtered totals kept exact per table; each costs one in-memory match per write. */
export const rememberedTotalsMax = 32
/** Pages of the change log that lead from a count to the present; a count that is farther behind is not remembered. */
export const totalReplaySteps = 200
/** Rows that a new search takes in at a time. */
export const searchFillRows = 500
/** CONTRACT: how long changes are kept; a client that was away for a day is told exactly what it missed. */
export const changesRetentionMs = 24 * 60 * 60 * 1000
/** CONTRACT: bytes of one change log beyond which the oldest changes go before their time. */
export const changesBytesMax = 1024 * MiB
/** Smaller logs would forget a change before its subscribers have it. */
export const changesBytesMin = MiB
/** Whatever the size of a log, changes this young stay: somebody may be reading them. */
export const changesKeptMinMs = 60_000
/** What a change takes beside its texts: ids, times, and its entries in indexes. */
export const changeOverheadBytes = 128
/** Rows and about as many bytes trimmed per write, so that trimming never holds other writers for long. */
export const changesTrimRowsMax = 1000
export const changesTrimBytesMax = 8 * MiB
/** Changes counted at once: their texts are not read. */
export const changesCountRowsMax = 5000
/** A row dated later than this after now was written under a clock that was ahead: nodes differ by less. */
export const clockSkewMs = 60_000
/** How often old changes and kept answers are trimmed. */
export const housekeepingIntervalMs = 10_000
/**
 * A read longer than this on the main thread is a pause everybody feels. A page of scattered rows takes a few
 * milliseconds on a busy machine, and a thread would make that no shorter.
 */
export const slowReadMs = 20
/** Reads that wait together let other work in between after so long. */
export const readBatchMs = 5
/** Files below this are scanned in a few milliseconds whatever the statement. */
export const slowReadBytes = 8 * MiB
/** Bytes that one read may take on the main thread: a millisecond of copying; a larger page is read in a thread. */
export const quickReadBytes = MiB
/**
 * A search of a large file runs on the main thread where each of its words occurs at most so many times: a millisecond
 * of ranking, and a few of reading rows for other conditions.
 */
export const quickSearchOccurrences = 500
/** How long a count of occurrences is used again, and how many of them a connection keeps: some 100 bytes each. */
export const wordFrequencyMs = 10_000
export const wordFrequenciesMax = 8000
/** How often a small file is asked for its size: what fills it beyond `slowReadBytes` takes about as long. */
export const fileSizeCheckMs = 250
/** How often a statement's plan is looked at again. */
export const slowReadRunsPerPlanCheck = 1000
export const slowReadTimeoutMs = 30_000
/** Different slow reads waiting per thread; beyond it they are refused with 503. */
export const slowReadsWaitingMax = 256
/** Of these, those of one caller, who may be a page of many lists; beyond it they are refused with 429. */
export const slowReadsWaitingPerCallerMax = 32
export const readerThreadsMax = 4
/** Files a reader thread keeps open. */
export const readerFilesMax = 16

// Faults of the disk
/** One block of a file system: what a probe writes to find out whether the disk takes writes. */
export const diskProbeBytes = 4 * KiB
/** A probe's result stands for this long: health may be asked by anyone at any rate. */
export const diskProbeIntervalMs = 1000
/** A disk that takes longer for one block is as good as away; health must answer. */
export const diskProbeTimeoutMs = 2000
/** Pauses between attempts to recover a database whose log could not be synced grow from the first to the last. */
export const recoveryRetryMinMs = 500
export const recoveryRetryMaxMs = 30_000
