/** Limits of live subscriptions. */
import { KiB, MiB } from './units.ts'

/** Changes read from a log at a time: a few milliseconds of work before the event loop is free again. */
export const feedPageChangesMax = 1000
/** Bytes of records in one such page. A log row has the record before and after its change. */
export const feedPageBytesMax = 8 * MiB
/** Poll interval for change logs that other processes write to. Bounds the delay when a pub/sub wake-up is lost. */
export const feedPollMs = 1000
/** Debounce of the notifications that writes send to the other nodes, per namespace. */
export const feedNoticeMs = 5
/** Changes that a resuming client can catch up with; beyond it, listing again is faster. */
export const recoveredChangesMax = 10_000
/** The same in bytes of the records in the log. */
export const recoveredBytesMax = 32 * MiB
/** Changes and bytes that a recovery keeps in memory; the last change may exceed the bytes by its own size. */
export const recoveryPageChangesMax = 500
export const recoveryPageBytesMax = 2 * MiB
/**
 * Concurrent recoveries; others are queued. Together with their pages, and with what a recovery under a rule with
 * `exists` gathers, they use less than 64 MiB.
 */
export const recoveriesMax = 4
/** Queued recoveries; beyond it clients are refused with a retry hint. */
export const recoveriesWaitingMax = 10_000
/** Subscriptions reconciled after the changes of one page; beyond it, `resync`. */
export const dependentViewsMax = 1000
/** Rows and characters sent to one subscription after a change of another table; beyond it, `resync`. */
export const dependentRowsMax = 1000
export const dependentCharsMax = 2 * MiB
/**
 * Requests in one reconciliation that changed rows of other tables that the rule reads: each is one state of the
 * condition in one statement. Beyond it, `resync` or `recovered: false`.
 */
export const dependencyGroupsMax = 64
/** Distinct conditions on the affected rows: each is a part of one statement. */
export const dependencyPartsMax = 100
/**
 * Attempts at reading rows while tables that a rule depends on keep changing; beyond it, `resync`. A burst of writes a
 * few milliseconds apart exhausts five on PostgreSQL.
 */
export const dependencyAttemptsMax = 25
/**
 * Changes, and characters of their records, that one reconciliation keeps in memory; with `recoveriesMax` of them
 * running, that is 32 MiB.
 */
export const gatheredChangesMax = 10_000
export const gatheredCharsMax = 8 * MiB

/** Changes of one request from which on they are sent as one message (rule SUB-29). */
export const batchedChangesMin = 10
/** Characters of one `batch_changes`; more changes of a request are split into several messages. */
export const batchedCharsMax = 256 * KiB
/** Unread bytes of a socket from which on it counts as a slow consumer and is paused until it has read them. */
export const socketSlowBytes = 64 * KiB
/** Characters sent to a shared query between checks for slow consumers. */
export const slowCheckChars = 64 * KiB
/** Unread characters from which on a catch-up pauses until the client has read them. */
export const catchUpCharsMax = 256 * KiB
/** Time that delivery may occupy the event loop before it yields. */
export const deliverySliceMs = 5
/** Subscribed channels of one socket. */
export const subscriptionsPerSocketMax = 100
/** Subscriptions of all sockets of one user, and of one address, which many users may share. */
export const subscriptionsPerUserMax = 2000
export const subscriptionsPerAddressMax = 50_000
/** Characters of the filters of these subscriptions, which stay in memory. */
export const filterCharsPerUserMax = MiB
export const filterCharsPerAddressMax = 16 * MiB
/** Conditions in each group of a subscription's filters (rule SUB-8). */
export const subscriptionFiltersMax = 5
/** Messages per second from one socket: a page subscribes to everything it shows when it opens. */
export const subscriptionMessageRate = 100
/** A filter of 5 conditions with a few hundred values each; filters stay in memory. */
export const subscriptionMessageBytesMax = 64 * KiB
export const broadcastEventCharsMax = 128
/** Name of a broadcast channel; with the prefix `broadcast:` it is within `channelCharsMax`. */
export const broadcastNameCharsMax = 256
/** The payload of a client's broadcast as JSON (rule SUB-93): it is sent to any number of sockets. */
export const broadcastPayloadBytesMax = 16 * KiB
/** A server's broadcast, which is sent to any number of sockets; larger data is sent as a reference. */
export const broadcastBodyBytesMax = 64 * KiB
/** `dblive:` and four names of maximum length. */
export const channelCharsMax = 512
/** Two snapshots of a busy server: 20 digits per running transaction. */
export const cursorCharsMax = 16 * KiB
