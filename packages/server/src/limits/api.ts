/**
 * Every number that bounds the program: SPEC's Limits table, CONTRACT's bounds, and our own, each with its
 * unit in the name and its reason beside it. KB and MB are 1,024-based (CONTRACT "Everywhere").
 */

export const KiB = 1024
export const MiB = 1024 * KiB

// Database (SPEC "Limits", CONTRACT "Database")
export const batchOperationsMax = 500
export const batchByFilterRecordsMax = 500
/** Bytes of a response that is made of records: what a client and its parser take in one piece without trouble. */
export const responseBytesMax = 8 * MiB
/** Of these, what stands around the items: a cursor of `cursorCharsMax` and a few words. */
export const responseEnvelopeBytes = 16 * KiB
/** A response below this is serialized in one step: about a millisecond. */
export const quickResponseBytes = 256 * KiB
/** Large responses that are made at once; each takes a few times its size while it is. */
export const largeResponsesMax = 4
/** Further ones that wait; beyond it they are refused with 503. */
export const largeResponsesWaitingMax = 1000
/** Bounds of what a configuration may set instead: a page of small records, and what a process has memory for. */
export const responseBytesLeast = 64 * KiB
export const responseBytesMost = 64 * MiB
/** The longest that one request occupies the event loop before others get it. */
export const eventLoopSliceMs = 10
export const orFilterConditionsMax = 5
export const filterConditionsMax = 100
export const inValuesMax = 1000
export const listLimitDefault = 100
/** More is clamped, not refused. */
export const listLimitMax = 1000
export const recordIdCharsMax = 64
export const instanceIdCharsMax = 128
export const fieldNameCharsMax = 128
export const searchWordsMax = 20
/** Undeclared fields that a page reads one by one; with more of them it reads the stored object whole. */
export const projectedMembersMax = 32
/** Longest highlight tag: an element with a class or two; each stands in a response five times per field. */
export const highlightTagCharsMax = 200
/** CONTRACT: marks in the snippet of a field, and characters of the text that it shows. */
export const snippetMarksMax = 5
export const snippetCharsMax = 300
/** Of these, about how many stand before the first mark. */
export const snippetLeadChars = 60
/** A search text of 20 words never needs more; bounds the tokenizer's work. */
export const searchTextCharsMax = 2 * KiB
/** One sort key per field is plenty; each adds a segment to a cursor's query. */
export const sortFieldsMax = 8
/** A cursor travels in the URL; one that sorts by longer texts names the record instead of its place. */
export const cursorCharsMax = 12 * KiB
/** Nesting of rule filters; far beyond any written rule, far below the stack and SQLite's 1,000. */
export const exprDepthMax = 32
/** A rule that asks elsewhere and has no answer by then denies: callers wait for it. */
export const asyncRuleTimeoutMs = 5000
/** PostgreSQL cuts identifiers at 63 bytes; the rest is for what we put before and behind a declared name. */
export const declaredNameCharsMax = 48
/** SQLite refuses more than 2,000 columns; wide tables this far are a design mistake. */
export const tableFieldsMax = 500
export const idempotencyKeyCharsMax = 255
export const idempotencyRetentionMs = 24 * 60 * 60 * 1000

// HTTP
export const jsonBodyBytesMax = MiB
/**
 * The listener's own bound on bodies: so many times the largest file of any bucket, and at least this much, so that an
 * endpoint's own 413, which says why, comes first.
 */
export const listenerBodyFactor = 4
export const listenerBodyBytesMin = 1024 * MiB
export const jsonDepthMax = 64
/** A refusal names this many bad fields; a body of wrong ones must not make a larger answer. */
export const fieldErrorsMax = 100
/** Ours are below 1 KiB with 4 KB of claims in base64 below 8 KiB; longer is refused before any parsing. */
export const accessTokenCharsMax = 8 * KiB
export const serviceKeyCharsMax = 512
/** 16 random characters are beyond guessing over a network; shorter ones tend to be words. */
export const serviceKeyCharsMin = 16
/** A secret can be tried without asking the server: 32 characters are 24 random bytes in base64. */
export const secretCharsMin = 32
/** Verified tokens kept until they expire; about 1 KiB each. */
export const tokenCacheEntriesMax = 10_000
/** CONTRACT "Users": 15 minutes. */
export const accessTokenLifetimeMs = 15 * 60 * 1000
/** CONTRACT "Users"; argon2id hashes any length, so the upper bound only limits what is sent. */
export const passwordCharsMin = 8
export const passwordCharsMax = 256
/** Addresses whose windows are remembered at once; beyond it the oldest window is forgotten. */
export const rateLimitKeysMax = 100_000
export const rateLimitWindowMs = 60_000
/** Requests per IP and window (CONTRACT "Everywhere"; SPEC for the analytics groups). */
export const rateLimitRequests = {
  db: 1000,
  storage: 500,
  auth: 60,
  signin: 10,
  signup: 10,
  mail: 5,
  push: 100,
  events: 100,
  /**
   * New instances of dynamic namespaces, each a database of its own on SQLite (three file handles, some 50 KiB): a
   * user opens a project now and then, and a script must not fill the disk with empty ones.
   */
  instances: 100,
  global: 10_000_000,
} as const
/** Where a group's window is another: mails to one address, whoever asks for them, would fill it in a day otherwise. */
export const rateLimitWindowsMs: { readonly [Group in keyof typeof rateLimitRequests]?: number } = {
  mail: 60 * 60 * 1000,
  instances: 60 * 60 * 1000,
}
/** Development is one person reloading a page, not a crowd. */
export const rateLimitDevelopmentFactor = 100
/** In-flight requests get this long after SIGTERM before their connections are closed. */
export const drainTimeoutMs = 10_000
/** All of closing; most supervisors kill a process 30 seconds after SIGTERM. */
export const closeMs = 20_000
/** Of these, when jobs and rooms are over or abandoned, and when requests are. */
export const closeRoomsMs = 7000
export const closeRequestsMs = 18_000
/** Seconds without traffic before a kept-alive connection is closed; also the slow-request bound. */
export const connectionIdleSeconds = 60

/** JSON responses from this size on are sent in pieces and counted until the client has taken them. */
export const largeResponseBytes = 256 * KiB
/** Pieces of such a response. */
export const responsePieceBytes = 64 * KiB
/** Bytes of large responses that clients have not taken yet, over all connections; beyond it stalled ones are cut. */
export const unreadResponseBytesMax = 128 * MiB
/** A response of which nothing was taken for this long may be cut for others: 64 KiB take no client so long. */
export const stalledResponseMs = 2000
/** Requests under way per handle the process may have; beyond it, downloads that are not read end sooner. */
export const pendingRequestsShare = 1 / 4
/** How soon then, in place of `connectionIdleSeconds`. */
export const crowdedIdleSeconds = 5
/** Downloads remembered to be cut sooner. */
export const rememberedDownloadsMax = 4096

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
export const readTurnMs = 5
/** Files below this are scanned in a few milliseconds whatever the statement. */
export const slowReadBytes = 8 * MiB
/** Bytes that one read may take on the main thread: a millisecond of copying; a larger page is read in a thread. */
export const quickReadBytes = MiB
/** How often a small file is asked for its size: what fills it beyond `slowReadBytes` takes about as long. */
export const fileSizeCheckMs = 250
/** How often a statement's plan is looked at again. */
export const slowReadRunsPerLook = 1000
export const slowReadTimeoutMs = 30_000
/** Slow reads waiting per thread; beyond it they are refused with 503. */
export const slowReadsWaitingMax = 100
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

// Child processes
/** A process that has not reported itself by then is not going to. */
export const childStartMs = 15_000
/** How long a process may take to finish (a SQL process folds its log) before it is killed. */
export const childEndMs = 3000

// Sockets
/** Sockets open at once in one process, some 10 KiB each when idle; beyond it, new ones are refused with 503. */
export const socketsMax = 50_000
/** Sockets of one user, on all devices and pages, and from one address, which may be that of many users. */
export const socketsPerUserMax = 500
export const socketsPerAddressMax = 25_000
/**
 * Bytes sent to all sockets together that have not been read. Beyond it the slowest sockets are closed first: each may
 * be behind by a few MiB, so a few hundred that never read would otherwise take all memory.
 */
export const socketsBufferedBytesMax = 256 * MiB
/** SPEC "Limits": sockets from one address that have not shown yet what they are for. */
export const pendingSocketsMax = 5
/** CONTRACT: what a socket has to show itself. */
export const socketAuthTimeoutMs = 5000
/** How often the deadlines of all sockets are looked at. */
export const socketTickMs = 250
/** CONTRACT: without any traffic for this long the other side is gone; a ping asks at half of it. */
export const socketStaleMs = 45_000
/** How often a silent socket is asked. */
export const socketPingMs = 10_000
/** How long the other side has to answer a close. */
export const socketCloseMs = 3000
/** A socket that is behind is closed when it has not read this much more in this time. */
export const socketSlowMs = 10_000
export const socketProgressBytes = 16 * KiB
/** A backlog beyond this closes the socket at once: more than what is sent before a look, with the largest records. */
export const socketBacklogBytesMax = 4 * MiB
/** What the runtime keeps for a socket before it drops it, should a single message be larger than a backlog may be. */
export const socketBufferBytesMax = 32 * MiB
/** Messages that wait for the one before to be dealt with: a second's worth, and what goes without counting. */
export const socketMessagesWaitingMax = 128
/** A token and a few words. */
export const socketPendingMessageBytesMax = 64 * KiB
/** The largest message of any conversation, a `join` with two states in it; each may say less. */
export const socketMessageBytesMax = 21 * MiB

// Several nodes
/** Leases held at once in one process: a few per room and node, with room to spare; about 200 bytes each. */
export const leasesMax = 100_000
/** Redis is next door: a connection that takes longer is not going to be of use. */
export const redisConnectTimeoutMs = 2000
/** A request waits this long for its rate limit at most; also the silence after which a connection counts as dead. */
export const redisCommandTimeoutMs = 1000
/** Commands without an answer; far beyond what a second of full load sends, so only a Redis that hangs gets there. */
export const redisCommandsMax = 20_000
/** How often an idle connection is tried, so that one that died silently is noticed and health tells the truth. */
export const redisPingIntervalMs = 2000
/** Pauses between attempts to reach a Redis that is away grow from the first to the last. */
export const redisRetryMinMs = 50
export const redisRetryMaxMs = 2000

// Engines on other machines
/** Work under way that is not answered for this long has the engine probed. */
export const circuitTickMs = 500
/** A probe without an answer for this long opens the circuit: far beyond a pause of a server that is only busy. */
export const circuitProbeMs = 2000
/** Pauses between probes while the circuit is open grow from the first to the last. */
export const circuitRetryMinMs = 100
export const circuitRetryMaxMs = 1000

// PostgreSQL
/** Connections per node: twice the cores of a small database server keeps it busy without queueing inside it. */
export const postgresConnectionsMax = 20
/** Of these, how many reads share: each carries many at once, and the others are left to transactions. */
export const postgresSharedConnectionsMax = 8
/** Of the connections of either kind, the part that statements on one table may have: a locked table stops itself. */
export const postgresTableShare = 0.75
/** How long a connection may take to be made. */
export const postgresConnectTimeoutMs = 3000
/** How long a transaction waits for a connection. */
export const postgresWaitMs = 5000
/** How long a statement waits for a lock: far beyond any transaction of the API, below what a caller waits for. */
export const postgresLockMs = 5000
/** A table whose reads ran into that is left alone for so long. */
export const postgresLockedMs = 2000
/** Reads waiting on one connection behind a statement that is not answered. */
export const postgresStalledReadsMax = 100
/** How often idle connections are let go, and a pool that had to shrink grows by one. */
export const postgresPoolTickMs = 5000
/** How long closing waits for transactions under way. */
export const postgresCloseMs = 5000
/** How long a start waits for a server that is not there yet. */
export const postgresStartMs = 60_000
/** A change of tables may read them whole: to build an index over many millions of rows takes minutes. */
export const postgresMigrationMs = 60 * 60 * 1000
/** How long a node counts as unhealthy after the server reported damage or lack of memory. */
export const postgresDamageMs = 10_000
/** Prepared statements on one connection before it is replaced; the server keeps them all, some 20 KiB each. */
export const postgresStatementsMax = 1000
/** A statement of the API longer than this is a mistake of indexes; it is ended and answered with 503. */
export const statementTimeoutMs = 30_000
/** Without an answer after this, past the server's own limit, the connection is dead. */
export const statementAnswerMs = statementTimeoutMs + 5000
/** Bytes of a page that is read without its lengths being added up first; each row may have its share of them. */
export const postgresQuickPageBytes = 4 * MiB
/** Attempts at a transaction that others got in the way of. */
export const postgresRetriesMax = 10
/** Health waits this long for an answer. */
export const postgresHealthMs = 1000
/** Changes a total is moved by before counting anew is cheaper. */
export const followedChangesMax = 1000
/** Bytes of those changes: each holds a record twice, and all of them come in one answer. */
export const followedBytesMax = 4 * MiB
/** Connections unused for this long are given back to the database server, which has room for few. */
export const postgresIdleMs = 60_000
