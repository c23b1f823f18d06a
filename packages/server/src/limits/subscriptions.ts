/** The numbers that bound live subscriptions, as `limits` has those of the whole program. */
import { KiB, MiB } from './units.ts'

/** Changes read from a log at a time: some milliseconds of work between looks at anything else. */
export const feedPageChangesMax = 1000
/** Bytes of records in one such page; a row of the log holds a record before and after its change. */
export const feedPageBytesMax = 8 * MiB
/**
 * Where other processes write too, how often a log is looked at that nobody has spoken of: what a lost message costs.
 */
export const feedPollMs = 1000
/** Writes tell the other nodes at most this often per namespace. */
export const feedNoticeMs = 5
/** Changes a client that was away is brought up to date with; beyond it, reading its view anew is quicker. */
export const recoveredChangesMax = 10_000
/** The same in bytes of the records in the log. */
export const recoveredBytesMax = 32 * MiB
/** Changes and bytes that a recovery holds at a time; the last change may exceed the bytes by its own size. */
export const recoveryPageChangesMax = 500
export const recoveryPageBytesMax = 2 * MiB
/**
 * Recoveries that run at once; the others wait. With their pages, and what one under a rule with `exists` gathers, they
 * stay below 64 MiB together.
 */
export const recoveriesMax = 4
/** Recoveries that wait; beyond it a client is asked to come back later. */
export const recoveriesWaitingMax = 10_000
/** Subscriptions that are followed into after the changes of one page; beyond it, `resync`. */
export const dependentViewsMax = 1000
/** Rows and characters that one subscription is told after a change of another table; beyond it, `resync`. */
export const dependentRowsMax = 1000
export const dependentCharsMax = 2 * MiB
/**
 * Requests that changed what a rule reads from other tables, in one reconciliation: each is a state of the condition in
 * one statement. Beyond it, `resync` or `recovered: false`.
 */
export const dependencyGroupsMax = 64
/** Distinct conditions on the rows concerned: each is a part of one statement. */
export const dependencyPartsMax = 100
/**
 * Attempts at reading rows while tables that a rule depends on keep changing; beyond it, `resync`. A burst of writes a
 * few milliseconds apart exhausts five on PostgreSQL.
 */
export const dependencyAttemptsMax = 25
/**
 * Changes, and characters of their records, that one reconciliation holds; with `recoveriesMax` of them at once that is
 * 32 MiB.
 */
export const gatheredChangesMax = 10_000
export const gatheredCharsMax = 8 * MiB

/** Changes of one request from which they are sent as one message (rule SUB-29). */
export const batchedChangesMin = 10
/** Characters of one `batch_changes`; a request that changed more is told in several. */
export const batchedCharsMax = 256 * KiB
/** Bytes a socket may be behind before it is set aside until it has read them. */
export const socketSlowBytes = 64 * KiB
/** Characters sent to a view between looks at who of its sockets is slow. */
export const slowCheckChars = 64 * KiB
/** Characters of a slow socket's catch-up that are taken together, the latest state of each row only. */
export const catchUpCharsMax = 256 * KiB
/** After this long at changes, everybody else has a turn. */
export const deliverySliceMs = 5
/** Channels one socket may watch at once. */
export const subscriptionsPerSocketMax = 100
/** Subscriptions of all sockets of one user, and of one address, which may be that of many users. */
export const subscriptionsPerUserMax = 2000
export const subscriptionsPerAddressMax = 50_000
/** Characters of the filters in these: filters are kept for as long as they are watched. */
export const filterCharsPerUserMax = MiB
export const filterCharsPerAddressMax = 16 * MiB
/** Conditions in each group of a subscription's filters (rule SUB-8). */
export const subscriptionFiltersMax = 5
/** Messages a second from one socket: a page that opens asks for all it shows at once. */
export const subscriptionMessageRate = 100
/** A filter of 5 conditions of a few hundred values each; filters are kept for as long as they are watched. */
export const subscriptionMessageBytesMax = 64 * KiB
export const broadcastEventCharsMax = 128
/** Of a channel that belongs to no table; with `broadcast:` it is within `channelCharsMax`. */
export const broadcastNameCharsMax = 256
/** The payload of a client's broadcast as JSON (rule SUB-93): it is sent to any number of sockets. */
export const broadcastPayloadBytesMax = 16 * KiB
/** A broadcast goes to any number of sockets; whoever has more to say sends a reference. */
export const broadcastBodyBytesMax = 64 * KiB
/** `dblive:` and four names of the longest kind. */
export const channelCharsMax = 512
/** Two snapshots of a busy server: 20 digits for each running transaction. */
export const cursorCharsMax = 16 * KiB
