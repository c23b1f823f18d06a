/** Bounds of PostgreSQL: pool, queues, timeouts; and of the circuit breaker for engines on other machines. */
import { MiB } from './units.ts'

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
/** Writes that wait for one advisory lock without a connection: some seconds of work at the pace of commits. */
export const advisoryLockWaitersMax = 1000
/** How long a write waits for advisory locks in its process: it costs memory alone, so three times a database lock. */
export const advisoryLockWaitMs = 15_000
/** Attempts at a write that may find an advisory lock taken; each knows one more lock than the one before. */
export const advisoryLockAttemptsMax = 20
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
/** Changes a total is moved by before counting anew is cheaper. */
export const followedChangesMax = 1000
/** Bytes of those changes: each holds a record twice, and all of them come in one answer. */
export const followedBytesMax = 4 * MiB
/** Connections unused for this long are given back to the database server, which has room for few. */
export const postgresIdleMs = 60_000
