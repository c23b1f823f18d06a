/** Bounds of the embedded engine: write-ahead logs, open instances, commit groups, reader threads, disk faults. */
import { KiB, MiB } from './units.ts'

// The embedded engine
/** Prepared statements kept per connection: a few shapes per endpoint and table. */
export const statementCacheEntriesMax = 500
/** Texts of conditions kept per table: those of its rules for users and for anonymous callers, and a few filters. */
export const conditionShapesMax = 8
/** Parsed sorts kept per table: those of its lists, of which an application has a few. */
export const sortTextsMax = 32
/** Statements of updates kept per table: one for each set of fields that clients change together. */
export const updateTextsMax = 64
/** Maximum operations in one commit; bounds how long a group blocks the event loop. */
export const groupCommitOperationsMax = 256
/** Maximum queued writes; beyond it a write is rejected with 503. */
export const writeQueueOperationsMax = 10_000
/** Of these, the writes of one caller that wait; 429 beyond it. */
export const writeQueuePerCallerMax = 5000
/**
 * Size of a write-ahead log at which it is checkpointed off the main thread, and to which it is truncated when it
 * restarts. Not smaller: overwriting a log makes a sync cheaper than growing it.
 */
export const walCheckpointBytes = 16 * MiB
/** The same for each instance: hundreds of them are open at once, most with some KiB of data. */
export const walInstanceCheckpointBytes = MiB
/** Multiple of that size beyond which writers wait for the checkpoint in progress. */
export const walPauseFactor = 8
/** Idle time after which a database's log is checkpointed and emptied, so that its file is complete. */
export const walQuietMs = 60_000
/** Interval of that check. */
export const walQuietCheckMs = 10_000
/** Maximum open instance databases; about 100 KiB each. The process's limit of file handles may allow fewer. */
export const openInstancesMax = 200
/** File handles of an open database: two connections with their logs, the log's index, and the log for its sync. */
export const handlesPerDatabase = 6
/** Share of the process's handles for instances; the others are for sockets, files and processes. */
export const instanceHandlesShare = 1 / 4
/** File handles reserved for files open during a request, when connections have used all others. */
export const reservedHandles = 8
/** Minimum open instances: with fewer, every request would open its database. */
export const openInstancesMin = 4
/** Page cache of a static database's connection. */
export const sqliteCacheKiB = 64 * KiB
export const sqliteInstanceCacheKiB = 512
/**
 * Size from which a file is mapped into memory: about that of a processor's cache. Smaller ones are read from SQLite's
 * page cache as fast.
 */
export const mappedFileBytesMin = 16 * MiB
/** Bytes of a file that are mapped into memory: SQLite's own bound, 2 GiB less 64 KiB. */
export const mappedBytesMax = 2048 * MiB - 64 * KiB
/**
 * Reads without a commit after which a large file is mapped. Its pages have to be found again then, which has cost as
 * much as it saves after some 3,000 point reads or 100 lists.
 */
export const mappedReadsMin = 1000
/** Bytes read at a time to see whether a file can be read before it is mapped. */
export const mappedReadBytes = MiB
/** Boolean fields at the end of each index: an update of one writes to every index that has it. */
export const coveredFieldsMax = 4
/** Filtered totals maintained per table; each costs one in-memory match per write. */
export const rememberedTotalsMax = 32
/**
 * Totals of all tables that are found by a value of a field, such as those of one author: about 1 KiB each. A write
 * looks up its values in a table's fields, and matches the totals of each.
 */
export const pinnedTotalsMax = 20_000
export const pinnedFieldsMax = 8
export const pinnedTotalsPerValueMax = 8
/** Maximum pages of the change log replayed to bring a total up to date; an older total is dropped. */
export const totalReplaySteps = 200
/** Rows indexed at a time when a search index is created. */
export const searchFillRows = 500
/** Retention of changes: a client that was away for a day can catch up completely. */
export const changesRetentionMs = 24 * 60 * 60 * 1000
/** Maximum bytes of a change log; beyond it the oldest changes are trimmed early. */
export const changesBytesMax = 1024 * MiB
/** Smaller logs would forget a change before its subscribers have it. */
export const changesBytesMin = MiB
/** Changes this young are never trimmed: a subscriber may be reading them. */
export const changesKeptMinMs = 60_000
/** Overhead of a change besides its texts: ids, times and index entries. */
export const changeOverheadBytes = 128
/**
 * Changes, and characters of their records, of an entry that several requests share: a reader of one of them reads all.
 */
export const sharedEntryChangesMax = 100
export const sharedEntryCharsMax = 64 * KiB
/** Rows and approximate bytes trimmed per write, so that trimming never blocks other writers for long. */
export const changesTrimRowsMax = 1000
export const changesTrimBytesMax = 8 * MiB
/** Changes counted at once, without reading their texts. */
export const changesCountRowsMax = 5000
/** Maximum clock skew between nodes: a row dated further ahead was written under a wrong clock. */
export const clockSkewMs = 60_000
/** Interval of trimming old changes and stored responses. */
export const housekeepingIntervalMs = 10_000
/**
 * A read longer than this on the main thread delays every request. A page of scattered rows takes a few milliseconds on
 * a busy machine, and a thread would not make it faster.
 */
export const slowReadMs = 20
/** Time limit of a batch of reads before other work runs. */
export const readBatchMs = 5
/** Files below this size are scanned in a few milliseconds by any statement. */
export const slowReadBytes = 8 * MiB
/** Maximum bytes of a read on the main thread, a millisecond of copying; a larger page is read in a thread. */
export const quickReadBytes = MiB
/**
 * A full-text search of a large file runs on the main thread if each word occurs at most this often: a millisecond of
 * ranking, and a few of reading rows for other conditions.
 */
export const quickSearchOccurrences = 500
/**
 * Rows of a large file that a statement may visit and sort on the main thread to return a few of them, such as the
 * latest comments of each post: some two milliseconds.
 */
export const quickVisitsMax = 2000
/** Rows of a large file that a page may skip by its offset on the main thread: a millisecond or two of an index. */
export const quickSkipsMax = 10_000
/** How long a count of occurrences is used again, and how many of them a connection keeps: some 100 bytes each. */
export const wordFrequencyMs = 10_000
export const wordFrequenciesMax = 8000
/** Interval at which a small file's size is checked: growing beyond `slowReadBytes` takes about as long. */
export const fileSizeCheckMs = 250
/** Runs of a statement after which its plan is classified again. */
export const slowReadRunsPerPlanCheck = 1000
export const slowReadTimeoutMs = 30_000
/** Maximum distinct slow reads queued per thread; beyond it they are rejected with 503. */
export const slowReadsWaitingMax = 256
/** Of these, the maximum per caller, who may load a page of many lists; beyond it they are rejected with 429. */
export const slowReadsWaitingPerCallerMax = 32
/**
 * Where every slow read has waited a quarter of a second for a second, there are more than the threads can do: a caller
 * then has a page of lists waiting, and what would wait longer than its client is refused.
 */
export const slowReadsStanding = { targetMs: 250, afterMs: 1000, waitMs: 10_000, waitingPerCaller: 4 }
/** Folders of instances that a search reads at the same time: a thread of the file system each. */
export const instanceFoldersReadMax = 4
/** Searches of instances that wait for the one under way; one reads 100,000 names in a fraction of a second. */
export const instanceSearchesWaitingMax = 16
/** Instances in use that are shown first: what fits above a list. */
export const recentInstancesMax = 8
/** Open instances among which the latest are found by the times of their files. */
export const recentInstancesReadMax = 64
export const readerThreadsMax = 4
/** Where cores are scarce, a busy thread gets a tenth of the event loop's time, and no half. On Linux only. */
export const readerThreadNiceness = 10
/** Maximum files a reader thread keeps open. */
export const readerFilesMax = 16

// Faults of the disk
/** One file-system block: what a probe writes to test whether the disk accepts writes. */
export const diskProbeBytes = 4 * KiB
/** Time a probe's result is cached: the health endpoint is public and unlimited. */
export const diskProbeIntervalMs = 1000
/** Time limit of a probe: a slower disk counts as failed, and health must respond. */
export const diskProbeTimeoutMs = 2000
/** Exponential backoff between attempts to recover a database whose log could not be synced. */
export const recoveryRetryMinMs = 500
export const recoveryRetryMaxMs = 30_000

// Scans
/** Processes for scans; one core is left to the rest of the server. */
export const scanProcessesMax = 4
/** On PostgreSQL, connections that scans of a node use at once; the database server does the work. */
export const scanConnectionsMax = 4
/** Scans that wait per process or connection; beyond it they are rejected with 503. */
export const scansWaitingMax = 64
/** Of these, the maximum per caller, who may load a page of many charts; beyond it they are rejected with 429. */
export const scansWaitingPerCallerMax = 16
/** How long a scan waits before it is rejected with 503: a few others at their time limit. */
export const scanWaitMs = 10_000
/**
 * Where every scan has waited a second for as long as two take at their time limit, there are more than can be run: one
 * waits only as long as four others take, and callers have two waiting.
 */
export const scanStanding = { targetMs: 1000, afterMs: 4000, waitMs: 8000, waitingPerCaller: 2 }
