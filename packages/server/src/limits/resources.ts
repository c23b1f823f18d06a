/** The numbers of the native resources: key-value stores, SQL databases, vector indexes. Each as in `limits`. */
import { KiB, MiB } from './units.ts'

// Key-value
/** CONTRACT. UTF-8; a namespace may ask for more or less. */
export const kvValueBytes = MiB
/** A value is read into memory whole, and several times over while it is checked. */
export const kvValueBytesMax = 16 * MiB
/** CONTRACT. UTF-8. */
export const kvKeyBytesMax = 512
/** Of a body beside its value: a key of escapes alone is 3 KiB, a cursor less. */
export const kvBodyExtraBytes = 16 * KiB
/** SPEC "Limits": one write per second per key. */
export const kvWriteIntervalMs = 1000
/** The shortest life of a value: until then the last write is known even of one that has gone. */
export const kvWriteIntervalMsMax = 60_000
/** SPEC "Limits". */
export const kvTtlSecondsMin = 60
/** Ten years: more is a point in time that was taken for a duration. */
export const kvTtlSecondsMax = 10 * 365 * 24 * 60 * 60
/** CONTRACT. More is clamped, not refused. */
export const kvListKeysMax = 1000
/** Rows removed per write, so that sweeping never holds other writers for long. */
export const kvSweepRowsMax = 1000

// SQL (CONTRACT "KV, SQL, vector")
/** With `_sql_` before it still a PostgreSQL identifier, and with a database's number a role. */
export const sqlNameCharsMax = 40
/** Of one statement; far more than anybody writes by hand. */
export const sqlQueryBytesMax = 100 * KiB
export const sqlParamsMax = 1000
export const sqlTimeoutMs = 30_000
/** With the wait for a turn within the 255 seconds that the runtime keeps a silent connection open for at most. */
export const sqlTimeoutMsMax = 4 * 60 * 1000
export const sqlRowsMax = 10_000
export const sqlRowsMaxMost = 100_000
/** Of an answer's rows as JSON, however large a response may be: it is held in memory, here and at the other end. */
export const sqlAnswerBytesMax = 10 * MiB
/**
 * Of what PostgreSQL sends for one statement, at least, whatever a response may have: a row is known to be too large
 * once it is there.
 */
export const sqlRawBytesMin = MiB
/** Of one value, and of one row of an embedded database. */
export const sqlValueBytesMax = 10 * MiB
/** An embedded database's file, unless the configuration says otherwise. */
export const sqlDatabaseBytes = 1024 * MiB
export const sqlDatabaseBytesMin = MiB
/** Reading statements of one database that run at once; those that write take turns anyway. */
export const sqlReadsAtOnceMax = 3
/** Waiting behind them, of each kind; beyond it 503. */
export const sqlWaitingMax = 100
/** Whoever has waited this long for a turn is told 503 while it is still worth asking again. */
export const sqlWaitMs = 10_000
/** A statement's process may grow to this: sorts and sets of an embedded database are in memory. */
export const sqlProcessBytesMax = 320 * MiB
/** Statements that a process keeps compiled, of at most so many characters each: a few MB together. */
export const sqlCompiledMax = 100
export const sqlCompiledCharsMax = 4096
/** How often that is looked at while a statement runs. */
export const sqlProcessPollMs = 25
/** Looks without a statement before whoever looks goes to sleep: half a second. */
export const sqlProcessIdlePolls = 20
/** With less than this free, a database that SQLite calls full has met the end of the disk, not its own bound. */
export const sqlDiskFreeBytesMin = MiB
/** So that busy processes do not keep the server from a processor: each gets a third of its share. */
export const sqlProcessNiceness = 5
/** An idle process is about 40 MB; starting one takes a tenth of a second. */
export const sqlProcessIdleMs = 60_000
/** How long a statement waits for a lock of another process, such as a backup's. */
export const sqlLockWaitMs = 5000
/**
 * A log this long is folded back before anything more is written. While statements read without a pause nobody can,
 * and it would grow until the disk is full.
 */
export const sqlLogBytesMax = 64 * MiB
/** The page cache of one process. */
export const sqlCacheKiB = 16 * KiB
export const sqlPageBytes = 4 * KiB
/** What a statement may write to disk for itself on PostgreSQL, where the platform's user may say so. */
export const sqlTempFileKiB = 1024 * KiB
/** PostgreSQL ends a statement itself; its answer may take this much longer before the connection is given up. */
export const sqlAnswerGraceMs = 3000
/** How long a node may not know of tables that another has made: rows in them are not counted meanwhile. */
export const sqlTableListMs = 1000

// Vector: the search core
/** Threads that search; an index is in one of them. */
export const vectorThreadsMax = 4
/** Copies and graphs of all indexes together: 700,000 vectors of 384 dimensions. */
export const vectorMemoryBytesMax = 2048 * MiB
/** A copy nobody has searched for this long gives way to one that is needed; before, two would take turns for ever. */
export const vectorCopyIdleMs = 60_000
/** How long an index that did not fit is refused without another try. */
export const vectorRefusalMs = 30_000
/** Values of one page that a copy reads from SQL: a few milliseconds of the main thread. */
export const vectorPageBytes = MiB
export const vectorPageRowsMax = 1000
/** Searches of one index that wait: seconds of them, in the largest one without a graph. */
export const vectorSearchesWaitingMax = 256
/** A thread that has said nothing for this long is ended: even a graph of gigabytes is saved sooner. */
export const vectorAnswerTimeoutMs = 60_000
/**
 * The largest magnitude of a value: the squared distance of two vectors of 4,096 such values is still a 32-bit float.
 */
export const vectorValueMax = 1e17
/** Rows compared in one call of the kernel. */
export const vectorBlockRows = 4096
/** Searched by comparing one by one below this many values in all, which takes about a millisecond. */
export const vectorExactValuesMax = 8_000_000
/** Candidates beside those asked for, whose order rounding may have mixed up. */
export const vectorSpareCandidates = 16
/** Vectors whose metadata is looked at to guess how many a condition accepts. */
export const vectorSharesSampled = 1024

// Vector: the graph
/** Neighbours of a node. More find better and take longer to build. */
export const vectorGraphConnectivity = 16
export const vectorGraphExpansion = 128
/** Work on a graph between two looks for messages: what a search may have to wait. */
export const vectorGraphSliceMs = 8
/** Widths of a search that are tried, narrowest first, until one finds well enough. */
export const vectorGraphWidths = [32, 64, 128, 256, 512, 1024, 2048] as const
/**
 * How many of the nearest a search may need to know: the best hundred of all, or the best ten of a twentieth. Beyond
 * the last, comparing all that is accepted is hardly slower.
 */
export const vectorGraphDepths = [10, 20, 40, 80, 160, 320] as const
/** A search goes this much deeper than it should have to, since what is accepted is not spread evenly. */
export const vectorGraphDepthSpare = 1.5
/** What a width must find of the true nearest: more than the 0.95 promised, since it is measured on a sample. */
export const vectorGraphRecallMin = 0.98
/** Vectors kept out of a graph to measure it with: those in it are found better than a query is. */
export const vectorGraphSamples = 64
/** Of a small index, as many as this share of it. */
export const vectorGraphSamplesShare = 0.05
/** A graph is measured anew when it has grown by this factor. */
export const vectorGraphGrowth = 1.5
/** Nodes whose vectors are gone, per one that lives, at which a graph is built anew. */
export const vectorGraphDeadMax = 0.5
/** A graph is saved at most this often, and only with this share of it changed. */
export const vectorSaveEveryMs = 5 * 60_000
export const vectorSaveShareMin = 0.05

// Vector: indexes and requests
/** Of the models in use, the largest have 4,096. */
export const vectorDimensionsMax = 4096
/** What pgvector's index takes. */
export const pgvectorDimensionsMax = 2000
/** Each is a column in memory of every search. */
export const vectorMetadataIndexesMax = 16
export const vectorFieldNameCharsMax = 64
/** UTF-8. A UUID or a SHA-256 in hexadecimal fits. */
export const vectorIdBytesMax = 64
/** UTF-8. */
export const vectorNamespaceBytesMax = 64
/** Of one vector, as JSON: a few fields and a paragraph of text. */
export const vectorMetadataBytesMax = 10 * KiB
/** Vectors written, or deleted, by one request. */
export const vectorBatchMax = 1000
/** Values of a response that is serialized in one step: about two milliseconds. */
export const vectorQuickValuesMax = 16_384
/** Vectors fetched by one request, values and all. */
export const vectorsFetchedMax = 100
/** Some 400 vectors of 1,536 numbers in full precision; one or two tenths of a second to read. */
export const vectorBodyBytesMax = 8 * MiB
/** A vector shorter than this has no direction left in 32-bit floats, whose squares would be zero. */
export const vectorLengthMin = 1e-15
/** CONTRACT. */
export const vectorMatchesMax = 100
/** CONTRACT. */
export const vectorMatches = 10
/** Deletions that copies can catch up with; a copy that is further behind is read anew. */
export const vectorDeletionsKept = 100_000
/** Deletions forgotten per request that deletes, so that none takes long. */
export const vectorDeletionsTrimmedMax = 2000
/** Searches, as long as what was found has changed meanwhile; after the last, what has changed is left out. */
export const vectorSearchesMax = 3
/** Vectors for which a start waits while PostgreSQL builds an index over them; some seconds. */
export const pgvectorBuiltAtStartMax = 20_000
/** Vectors under a filter that PostgreSQL compares one by one rather than look for them in its index: some 100 ms. */
export const pgvectorComparedMax = 2000
/** Candidates of a search in PostgreSQL: what makes nine and a half of the best ten be among them. */
export const pgvectorCandidatesMin = 100
