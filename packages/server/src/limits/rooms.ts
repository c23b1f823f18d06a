/** The numbers of rooms: what a configuration may ask for, nodes, the engine. Each as in `limits`. */
import { jsonDepthMax } from './api.ts'
import { KiB, MiB } from './units.ts'

/** SPEC "Versioning": what the messages over a room's socket mean. */
export const roomProtocolVersion = 2

// Rooms (SPEC "Limits", CONTRACT "Rooms"): defaults, each followed by the most a configuration may ask for
export const roomPlayers = 100
/** Everybody is told of everybody: what members hear grows with the square of this. */
export const roomPlayersMax = 1000
/** Of the shared state and of each player's, as JSON. */
export const roomStateBytes = MiB
export const roomStateBytesMax = 10 * MiB
/** Messages a second from one connection, pings left out. */
export const roomMessageRate = 10
/** A room hears a socket at most this often; beyond it the network is the wrong one. */
export const roomMessageRateMax = 1000
export const roomActionTimeoutMs = 5000
/** Nobody else is served in the room meanwhile. */
export const roomActionTimeoutMsMax = 60_000
/** CONTRACT: how long a player who has lost the connection keeps the seat. */
export const roomReconnectGraceMs = 30_000
export const roomHibernateAfterMs = 300_000
export const roomSaveIntervalMs = 60_000
export const roomStateTtlMs = 24 * 60 * 60 * 1000
export const roomIdCharsMax = 128
/** What a message holds beside two states. */
export const roomMessageExtraBytes = 64 * KiB
/** CONTRACT gives no number; as many as fit a page of any list. */
export const roomSummariesMax = 1000
export const roomListLimit = 100
/** More is clamped. Every node answers with as many. */
export const roomListLimitMax = 1000
/** How often due timers and expired rooms are looked for. */
export const roomSweepMs = 5000
/** An id that a client makes up for its action, and names of actions and signals. */
export const roomNameCharsMax = 128

// Rooms on several nodes
/** A node that is not heard of for this long has lost its rooms: twice what a bad pause takes. */
export const roomNodeLeaseMs = 6000
/** A node gives up its lease this long before the others may take it: its clock need not run at their speed. */
export const roomNodeMarginMs = 1000
export const roomNodeRenewMs = 1500
/** How often a node looks at those it has to do with, and has them notice what was lost on the way. */
export const roomPeerCheckMs = 1000
/** Looks without a word before it is asked whether the node's lease still lives. */
export const roomPeerSilenceMax = 3
/** Nodes met and rooms found elsewhere that are remembered. */
export const roomOwnersKnownMax = 10_000
/** Commands that wait while a room's owner is looked for. */
export const roomCommandsWaitingMax = 1000
/** Pauses between looks for a room's owner grow from the first to the last, and add up to twice a lease. */
export const roomFindRetryMinMs = 20
export const roomFindRetryMaxMs = 1000
export const roomFindRetriesMax = 20
/** How long another node has to answer a question; longer, and it is not worth the wait. */
export const roomRequestTimeoutMs = 1000
/** Questions without an answer yet. */
export const roomRequestsMax = 10_000
/** How long a node that stops may take to hand over its rooms. */
export const roomDrainMs = 2000

// The room engine
/** SPEC "Limits". */
export const roomPathDepthMax = 5
/** Nesting of a state; as deep as a body may be. */
export const roomStateDepthMax = jsonDepthMax
/** Elements an array may grow by without having them assigned: an index from a client must not make a million. */
export const roomArrayGapMax = 1000
/** Deltas kept for a client that comes back: 25 s of a room that changes with every tick. */
export const roomHistoryEntriesMax = 512
export const roomHistoryBytesMax = 256 * KiB
export const roomHistoryAgeMs = 120_000
/** The same of one player's own state. */
export const playerHistoryEntriesMax = 64
export const playerHistoryBytesMax = 32 * KiB
/** Answers kept per user for actions that are sent again. */
export const keptResultsMax = 128
export const keptResultsBytesMax = 256 * KiB
export const keptResultAgeMs = 60_000
/** One result, or all messages of one action: a state is the place for more. */
export const actionResultBytesMax = 64 * KiB
export const actionMessagesBytesMax = MiB
export const actionMessagesMax = 1000
/** What a client may be told of an error that a handler threw. */
export const actionErrorCharsMax = 500
/** Commands that wait in a room: a second of 100 players at their full rate. */
export const roomInboxCommandsMax = 1000
export const roomInboxBytesMax = 4 * MiB
/** Messages of a room that wait for its next tick. */
export const roomOutboxBytesMax = 4 * MiB
export const roomTimersMax = 1000
export const roomTimerDataBytesMax = 16 * KiB
/** A timer further ahead is a job for a calendar. */
export const roomTimerDelayMaxMs = 366 * 24 * 60 * 60 * 1000
/** SPEC "Limits". */
export const roomTickMs = 50
/** Versions reserved ahead of those in use, so that a crash repeats none: eight minutes of ticks without one save. */
export const roomVersionsReserved = 10_000
/** A journal below this is not worth a snapshot; above it, it may grow to the snapshot's own size. */
export const roomJournalBytesMin = 64 * KiB
/** Rooms and bytes in one transaction. */
export const roomsPerSaveMax = 500
export const roomSaveBytesMax = 8 * MiB
/** Rooms woken or ended in one sweep. */
export const roomsPerSweepMax = 100
/** Actions that an administrator is shown. */
export const recentActionsMax = 50
/**
 * Bytes of `members_sync` that one room may cause in a second, over all its sockets: a full room of 100 sends its list
 * with every other tick, one of thousands every few seconds.
 */
export const membersSyncBytesPerSecond = 8 * MiB
/** No list waits longer, however large the room. */
export const membersSyncDelayMaxMs = 5000
export const memberStateBytesMax = 4 * KiB
/** Of a player in an administrator's look at a room, beside the state: an id with escapes, and two numbers. */
export const playerViewBytes = KiB
/** Rooms whose metadata is read at once for summaries: 1 MiB of it at most. */
export const roomSummariesAtOnce = 64
/** Listed with every summary. */
export const roomMetadataBytesMax = 16 * KiB
