/** Limits of rooms: configuration, nodes and the engine. */
import { jsonDepthMax } from './api.ts'
import { KiB, MiB } from './units.ts'

/** Version of the protocol over the socket of a room (ROOM-CONNECT-4). */
export const roomProtocolVersion = 2

// Configuration: defaults, each followed by the maximum that a configuration can set
export const roomPlayers = 100
/** Every member receives the list of all members: that traffic grows with the square of this. */
export const roomPlayersMax = 1000
/** Of the shared state and of each player's state, as JSON. */
export const roomStateBytes = MiB
export const roomStateBytesMax = 10 * MiB
/** Messages per second from one socket, without pings. */
export const roomMessageRate = 10
/** A higher rate calls for another transport than one WebSocket. */
export const roomMessageRateMax = 1000
export const roomActionTimeoutMs = 5000
/** A room processes nothing else while a handler runs. */
export const roomActionTimeoutMsMax = 60_000
/** How long a player without a socket keeps the seat (ROOM-SEAT-2). */
export const roomReconnectGraceMs = 30_000
export const roomHibernateAfterMs = 300_000
export const roomSaveIntervalMs = 60_000
export const roomStateTtlMs = 24 * 60 * 60 * 1000
export const roomIdCharsMax = 128
/** Space in a message besides two states. */
export const roomMessageExtraBytes = 64 * KiB
/** The largest page of any list (ROOM-SUMMARY-6). */
export const roomSummariesMax = 1000
export const roomListLimit = 100
/** Every node answers with up to this many rooms. */
export const roomListLimitMax = 1000
/** Interval of the search for due timers and expired rooms. */
export const roomSweepMs = 5000
/** Length of request ids, and of the names of actions and signals. */
export const roomNameCharsMax = 128

// Rooms on several nodes
/** Lifetime of a node's lease without renewal, after which it loses its rooms: twice a long pause of the process. */
export const roomNodeLeaseMs = 6000
/** A node stops relying on its lease this long before it ends, since clocks of nodes run at different speeds. */
export const roomNodeMarginMs = 1000
export const roomNodeRenewMs = 1500
/** Interval of heartbeats between nodes, by which the receiver detects lost messages. */
export const roomPeerCheckMs = 1000
/** Missed heartbeats before the lease of a node is read. */
export const roomPeerSilenceMax = 3
/** Cached owners of rooms, and cached names of ended nodes. */
export const roomOwnersKnownMax = 10_000
/** Commands that wait while the owner of a room is located. */
export const roomCommandsWaitingMax = 1000
/** Backoff between attempts to locate the owner of a room. All pauses together take twice a lease. */
export const roomFindRetryMinMs = 20
export const roomFindRetryMaxMs = 1000
export const roomFindRetriesMax = 20
/** How long another node has to answer a request. */
export const roomRequestTimeoutMs = 1000
/** How long an administrator waits for the response to an action: twice what an action may take by default. */
export const roomActionAnswerMs = 2 * roomActionTimeoutMs
/** Pending requests to other nodes. */
export const roomRequestsMax = 10_000
/** How long a stopping node takes at most to hand over its rooms. */
export const roomDrainMs = 2000

// The room engine
/** Levels of a path in a delta (ROOM-DELTA-2). */
export const roomPathDepthMax = 5
/** Nesting of a state: the same as of a request body. */
export const roomStateDepthMax = jsonDepthMax
/**
 * Elements by which an assignment beyond the end can extend an array, so that no index from a client allocates
 * millions.
 */
export const roomArrayGapMax = 1000
/** Deltas kept for clients that reconnect: 25 s of a room that changes with every tick. */
export const roomHistoryEntriesMax = 512
export const roomHistoryBytesMax = 256 * KiB
export const roomHistoryAgeMs = 120_000
/** The same for the state of one player. */
export const playerHistoryEntriesMax = 64
export const playerHistoryBytesMax = 32 * KiB
/** The latest responses of a user, kept for repeated requests; up to twice as many are. */
export const keptResultsMax = 128
/** Of all kept responses of a user. */
export const keptResultsBytesMax = 256 * KiB
export const keptResultAgeMs = 60_000
/** One result, or all messages of one action. Larger data belongs in a state. */
export const actionResultBytesMax = 64 * KiB
export const actionMessagesBytesMax = MiB
export const actionMessagesMax = 1000
/** Length of the message of a handler's error that a client receives. */
export const actionErrorCharsMax = 500
/** Commands in the inbox of a room: one second of 100 players at their full rate. */
export const roomInboxCommandsMax = 1000
export const roomInboxBytesMax = 4 * MiB
/** Messages of a room that wait for the next tick. */
export const roomOutboxBytesMax = 4 * MiB
export const roomTimersMax = 1000
export const roomTimerDataBytesMax = 16 * KiB
/** Longest delay of a timer: a leap year. */
export const roomTimerDelayMaxMs = 366 * 24 * 60 * 60 * 1000
/** Paths that have numbers in packed deltas, and their characters: two per player of the largest room, and more. */
export const packedPathsMax = 4096
export const packedPathCharsMax = 256 * KiB
/** Interval of deltas and messages (ROOM-DELTA-4). */
export const roomTickMs = 50
/** Answers of a socket that wait for the next tick, and the characters of one; more or longer ones are sent at once. */
export const roomAnswersWaitingMax = 64
export const roomWaitingAnswerCharsMax = KiB
/** Versions reserved ahead, so that none repeats after a crash: eight minutes of ticks without a save. */
export const roomVersionsReserved = 10_000
/** A journal below this size needs no snapshot; above it, it can grow to the size of the snapshot. */
export const roomJournalBytesMin = 64 * KiB
/** Rooms and bytes saved in one transaction. */
export const roomsPerSaveMax = 500
export const roomSaveBytesMax = 8 * MiB
/** Rooms loaded or destroyed in one sweep. */
export const roomsPerSweepMax = 100
/** Latest actions of a room that administrators see, and the characters of their payloads and errors. */
export const recentActionsMax = 200
export const recentActionsCharsMax = 32 * KiB
/** Characters of a payload that are kept; of a message beyond the bound, which is costly to serialize, none are. */
export const recentActionPayloadChars = 512
export const recentActionReadBytesMax = 4 * KiB
/** Window of the load of a room: long enough to be steady, short enough to follow. */
export const roomLoadWindowMs = 10_000
/** Least size of the preview of a state. */
export const roomPreviewBytesMin = KiB
/**
 * Bytes of `members_sync` per second and room, over all its sockets: a full room of 100 sends its list with every
 * second tick, a room of a thousand every few seconds.
 */
export const membersSyncBytesPerSecond = 8 * MiB
/** Longest delay of `members_sync`, also in large rooms. */
export const membersSyncDelayMaxMs = 5000
export const memberStateBytesMax = 4 * KiB
/** Bytes of a player in a view for administrators, without the state: an escaped id and two numbers. */
export const playerViewBytes = KiB
/** Rooms whose metadata is read at once for summaries: at most 1 MiB. */
export const roomSummariesAtOnce = 64
/** Included in every summary. */
export const roomMetadataBytesMax = 16 * KiB
