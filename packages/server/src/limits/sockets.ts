/** Bounds of WebSockets: counts, authentication, keep-alive, backpressure. */
import { KiB, MiB } from './units.ts'

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
