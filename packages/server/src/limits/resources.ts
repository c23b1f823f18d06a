/** Limits of the native resources: key-value stores, SQL databases, vector indexes. */
import { KiB, MiB } from './units.ts'

// Key-value
/** Default size of a value in UTF-8; configurable per namespace. */
export const kvValueBytes = MiB
/**
 * The same as of a record. Drivers encode a statement in one step, which must stay far below 50 ms of the event loop:
 * 16 MiB took up to 107 ms. Larger values belong in files.
 */
export const kvValueBytesMax = 4 * MiB
/** In UTF-8. */
export const kvKeyBytesMax = 512
/** Body overhead besides the value: a key of escapes alone is 3 KiB, a cursor less. */
export const kvBodyExtraBytes = 16 * KiB
/** One write per second and key. */
export const kvWriteIntervalMs = 1000
/** Equal to the shortest TTL: the last write is known at least that long, even of an expired value. */
export const kvWriteIntervalMsMax = 60_000
/** Shortest TTL. */
export const kvTtlSecondsMin = 60
/** Ten years: a larger value is probably a timestamp passed as a duration. */
export const kvTtlSecondsMax = 10 * 365 * 24 * 60 * 60
/** Larger limits are clamped, not rejected. */
export const kvListKeysMax = 1000
/** Entries of a page for administrators. */
export const kvListed = 100
/** Rows removed per write, so that sweeping does not block other writers for long. */
export const kvSweepRowsMax = 1000

// SQL
/** With the prefix `_sql_` still a valid PostgreSQL identifier, and with a database's number a role name. */
export const sqlNameCharsMax = 40
/** Length of a statement; far longer than hand-written ones. */
export const sqlQueryBytesMax = 100 * KiB
export const sqlParamsMax = 1000
export const sqlTimeoutMs = 30_000
/** With the wait in the queue below 255 seconds, the longest that the runtime keeps a silent connection open. */
export const sqlTimeoutMsMax = 4 * 60 * 1000
export const sqlRowsMax = 10_000
export const sqlRowsMaxMost = 100_000
/** Rows of a response as JSON, regardless of the response bound: they are held in memory by server and client. */
export const sqlAnswerBytesMax = 10 * MiB
/**
 * Minimum bound for what PostgreSQL sends for a statement, regardless of the response bound: a row's size is known only
 * once it has arrived.
 */
export const sqlRawBytesMin = MiB
/** Size of one value and of one row of an embedded database. */
export const sqlValueBytesMax = 10 * MiB
/** Default size of an embedded database's file. */
export const sqlDatabaseBytes = 1024 * MiB
export const sqlDatabaseBytesMin = MiB
/** Concurrent reads per database; writes are serialized. */
export const sqlReadsAtOnceMax = 3
/** Longest wait in the queue; then 503, early enough for a useful retry. */
export const sqlWaitMs = 10_000
/** The queue for reads and that for writes: 429 beyond the share of a caller, 503 beyond the length. */
export const sqlWaiting = { waiting: 200, waitingPerCaller: 100, waitMs: sqlWaitMs }
/** Memory of a statement's process: sorts and temporary sets of an embedded database are in memory. */
export const sqlProcessBytesMax = 320 * MiB
/** Cached prepared statements per process, and their longest text: a few MB in total. */
export const sqlCompiledMax = 100
export const sqlCompiledCharsMax = 4096
/** Longest run of a statement for which a form is sought that is planned once; that plans it four more times. */
export const sqlStabilizedMsMax = 20
/** Interval of the memory check while a statement runs. */
export const sqlProcessPollMs = 25
/** Idle checks before the watchdog sleeps: half a second. */
export const sqlProcessIdlePolls = 20
/** With less free disk space than this, SQLite's "database full" means a full disk, not the database's own limit. */
export const sqlDiskFreeBytesMin = MiB
/** Keeps the server responsive where cores are scarce: each busy process gets a tenth of the event loop's time. */
export const sqlProcessNiceness = 10
/** An idle process is about 40 MB; starting one takes a tenth of a second. */
export const sqlProcessIdleMs = 60_000
/** Time that a statement waits for a lock of another process, such as a backup. */
export const sqlLockWaitMs = 5000
/**
 * WAL size beyond which writes wait for a checkpoint. Continuous reads prevent checkpoints, and the WAL would fill the
 * disk.
 */
export const sqlLogBytesMax = 64 * MiB
/** Page cache per process. */
export const sqlCacheKiB = 16 * KiB
export const sqlPageBytes = 4 * KiB
/** Temporary disk space of a statement on PostgreSQL, where the platform's role may set it. */
export const sqlTempFileKiB = 1024 * KiB
/** Extra time for PostgreSQL to report its own statement timeout before the connection is closed. */
export const sqlAnswerGraceMs = 3000
/** Time for which a node may not know tables created by another; their rows are not counted meanwhile. */
export const sqlTableListMs = 1000

// Vector: the search core
/** Search threads; each index is in one of them. */
export const vectorThreadsMax = 4
/** Memory of copies and graphs of all indexes: 700,000 vectors of 384 dimensions. */
export const vectorMemoryBytesMax = 2048 * MiB
/** Idle time after which a copy can be evicted for another; with less, two could evict each other forever. */
export const vectorCopyIdleMs = 60_000
/** Time for which an index that did not fit is rejected without another attempt. */
export const vectorRefusalMs = 30_000
/** Page size when a copy reads from SQL: a few milliseconds of the main thread. */
export const vectorPageBytes = MiB
export const vectorPageRowsMax = 1000
/** Queued searches per index: seconds of work in the largest one without a graph. */
export const vectorSearchesWaitingMax = 256
/** A thread without a message for this long is terminated: even a graph of gigabytes is saved sooner. */
export const vectorAnswerTimeoutMs = 60_000
/**
 * The largest magnitude of a value: the squared distance of two vectors of 4,096 such values is still a 32-bit float.
 */
export const vectorValueMax = 1e17
/** Rows compared in one call of the kernel. */
export const vectorBlockRows = 4096
/** Below this many values an index is searched exhaustively, which takes about a millisecond. */
export const vectorExactValuesMax = 8_000_000
/** Extra candidates, whose order rounding may have changed. */
export const vectorSpareCandidates = 16
/** Vectors sampled to estimate the selectivity of a condition. */
export const vectorSharesSampled = 1024

// Vector: the graph
/** Neighbors per node. More improve recall and slow down the build. */
export const vectorGraphConnectivity = 16
export const vectorGraphExpansion = 128
/** Time slice of graph work between messages: what a search may have to wait. */
export const vectorGraphSliceMs = 8
/** Search widths to measure, narrowest first, until one has enough recall. */
export const vectorGraphWidths = [32, 64, 128, 256, 512, 1024, 2048] as const
/**
 * Depths to measure: the best hundred of all, or the best ten of a twentieth. Beyond the last, an exhaustive comparison
 * is hardly slower.
 */
export const vectorGraphDepths = [10, 20, 40, 80, 160, 320] as const
/** Safety factor for the depth, since accepted vectors are not distributed evenly. */
export const vectorGraphDepthSpare = 1.5
/** Required recall on a sample: above the promised 0.95, since it is an estimate. */
export const vectorGraphRecallMin = 0.98
/** Vectors left out of a graph to measure it: those in the graph are found better than queries. */
export const vectorGraphSamples = 64
/** For small indexes, the sample as a fraction of the index. */
export const vectorGraphSamplesShare = 0.05
/** Growth factor after which a graph is measured again. */
export const vectorGraphGrowth = 1.5
/** Deleted nodes per existing one at which a graph is rebuilt. */
export const vectorGraphDeadMax = 0.5
/** A graph is saved at most this often, and only if this fraction has changed. */
export const vectorSaveEveryMs = 5 * 60_000
export const vectorSaveShareMin = 0.05

// Vector: indexes and requests
/** The largest models in use have 4,096. */
export const vectorDimensionsMax = 4096
/** pgvector's limit for indexed vectors. */
export const pgvectorDimensionsMax = 2000
/** Each is an in-memory column of every search. */
export const vectorMetadataIndexesMax = 16
export const vectorFieldNameCharsMax = 64
/** UTF-8. A UUID or a SHA-256 in hexadecimal fits. */
export const vectorIdBytesMax = 64
/** UTF-8. */
export const vectorNamespaceBytesMax = 64
/** Metadata of one vector as JSON: a few fields and a paragraph of text. */
export const vectorMetadataBytesMax = 10 * KiB
/** Vectors written, or deleted, by one request. */
export const vectorBatchMax = 1000
/** Values of a response that is serialized in one step: about two milliseconds. */
export const vectorQuickValuesMax = 16_384
/** Vectors fetched by one request, with their values. */
export const vectorsFetchedMax = 100
/** About 400 vectors of 1,536 numbers in full precision; 0.1 to 0.2 seconds to parse. */
export const vectorBodyBytesMax = 8 * MiB
/** Shortest vector with a direction: the squares of shorter ones underflow in 32-bit floats. */
export const vectorLengthMin = 1e-15
/** Largest `topK` of a search. */
export const vectorMatchesMax = 100
/** Default `topK` of a search. */
export const vectorMatches = 10
/** Tombstones kept for copies; a copy that is further behind is reloaded. */
export const vectorDeletionsKept = 100_000
/** Tombstones removed per delete request, so that none takes long. */
export const vectorDeletionsTrimmedMax = 2000
/** Attempts of a search whose matches change meanwhile; the last one omits changed matches. */
export const vectorSearchesMax = 3
/** Largest index whose database index is built at startup; some seconds. */
export const pgvectorBuiltAtStartMax = 20_000
/** Filtered vectors that PostgreSQL compares exhaustively instead of using its index: some 100 ms. */
export const pgvectorComparedMax = 2000
/** Candidates of a search in PostgreSQL, for a recall of 0.95 of the best ten. */
export const pgvectorCandidatesMin = 100

// Child processes
/** A child process that has not reported readiness by then is considered failed. */
export const childStartMs = 15_000
/** How long a child process may take to exit (a SQL process checkpoints its log) before it is killed. */
export const childEndMs = 3000
