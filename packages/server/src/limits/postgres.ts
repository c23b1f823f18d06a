/** Bounds of PostgreSQL: pool, queues, timeouts; and of the circuit breaker for engines on other machines. */
import { KiB, MiB } from './units.ts'

// Engines on other machines
/** Operations in flight without a completion for this long trigger a probe of the engine. */
export const circuitTickMs = 500
/** A probe without a reply for this long opens the circuit; far above a pause of a busy server. */
export const circuitProbeMs = 2000
/** Exponential backoff between probes while the circuit is open, from the first to the last pause. */
export const circuitRetryMinMs = 100
export const circuitRetryMaxMs = 1000

// PostgreSQL
/** Connections per node: twice the cores of a small database server keeps it busy without queueing inside it. */
export const postgresConnectionsMax = 20
/** Of these, connections shared by pipelined reads; the others are left to transactions. */
export const postgresSharedConnectionsMax = 8
/** Reads of one table and tick that leave together on one connection; few, since each waits for those before. */
export const postgresBurstReads = 4
/** The same for look-ups of rows by id, which take some 15 µs each. */
export const postgresBurstLookups = 16
/** Share of either kind of connections that statements on one table may use: a locked table blocks only itself. */
export const postgresTableShare = 0.75
/** Time limit for connecting. */
export const postgresConnectTimeoutMs = 3000
/** Time limit of a transaction's wait for a connection. */
export const postgresWaitMs = 5000
/** `lock_timeout`: far above any transaction of the API, below what a caller waits for. */
export const postgresLockMs = 5000
/**
 * `idle_in_transaction_session_timeout`: how long a node that stalls or vanishes in a transaction keeps its locks. Far
 * above the pauses of any transaction, whose work never waits for a client; far below the lease of a job.
 */
export const postgresIdleTransactionMs = 10_000
/** Writes that wait for one advisory lock without a connection: some seconds of work at the pace of commits. */
export const advisoryLockWaitersMax = 1000
/** How long a write waits for advisory locks in its process: it costs memory alone, so three times a database lock. */
export const advisoryLockWaitMs = 15_000
/** Attempts at a write that may find an advisory lock taken; each knows one more lock than the one before. */
export const advisoryLockAttemptsMax = 20
/** A table whose reads ran into the lock timeout rejects statements for this long. */
export const postgresLockedMs = 2000
/** Maximum reads on one connection behind a stalled statement. */
export const postgresStalledReadsMax = 100
/** Interval at which idle connections are closed, and a reduced pool grows by one. */
export const postgresPoolTickMs = 5000
/** Time limit for transactions in flight when the pool closes. */
export const postgresCloseMs = 5000
/** Time limit for the server to become available at startup. */
export const postgresStartMs = 60_000
/** `statement_timeout` of migrations: building an index over many millions of rows takes minutes. */
export const postgresMigrationMs = 60 * 60 * 1000
/** Time a node reports itself unhealthy after the server reported corruption or lack of memory. */
export const postgresDamageMs = 10_000
/** Prepared statements per connection before it is replaced; the server keeps them all, some 20 KiB each. */
export const postgresStatementsMax = 1000
/** `statement_timeout` of the API: a longer statement lacks an index; it is canceled and the response is 503. */
export const statementTimeoutMs = 30_000
/** Without a reply after this, beyond the server's own limit, the connection is dead. */
export const statementAnswerMs = statementTimeoutMs + 5000
/** Maximum bytes of a page read without summing up its lengths first; divided between its rows. */
export const postgresQuickPageBytes = 4 * MiB
/** Maximum attempts of a transaction with serialization conflicts. */
export const postgresRetriesMax = 10
/** Maximum changes applied to a total before counting again is cheaper; a node keeps as many of a table. */
export const followedChangesMax = 1000
/** Maximum bytes of those changes: each has a record twice, and all arrive in one reply. */
export const followedBytesMax = 4 * MiB
/** Tables whose last changes a node keeps for its totals, and the bytes of each; without them a total reads its own. */
export const followedTablesMax = 64
export const followedKeptBytes = MiB
/** Groups of writes that share a transaction at a time, per table: while one commits, others read and write. */
export const sharedGroupsMax = 4
/** Of these, the groups that start with any number of writes: a lone write waits for no more than one commit. */
export const sharedGroupsAnySize = 2
/** The third group starts with this many writes, and each further one with as many more: small groups cost the most. */
export const sharedGroupStep = 8
/** Writes of a group: more save little, and each waits for all. */
export const sharedWritesMax = 64
/** By how much groups grow again with each that succeeds, after one that failed has halved them. */
export const sharedGrowth = 1
/** A group with more characters of parameters starts no further write. */
export const sharedBytesMax = MiB
/** `lock_timeout` of a group, whose other writes wait as well; below `deadlock_timeout`. */
export const sharedLockMs = 250
/** `statement_timeout` of a group, whose other writes wait as well. */
export const sharedStatementMs = 2000
/** Initial bytes of a connection's buffer for statements: those of one tick, as a rule. */
export const wireBufferMinBytes = 16 * KiB
/** A buffer that large values have grown beyond this is not kept. */
export const wireBufferKeptBytes = 256 * KiB
/** Idle connections are closed after this time: the database server has room for few. */
export const postgresIdleMs = 60_000

/** Time limit of a search of instances: stepping over some 100,000 ids. */
export const instanceSearchTimeoutMs = 5000
