/** Bounds of WebSockets: counts, authentication, keep-alive, backpressure. */
import { KiB, MiB } from './units.ts'

// Sockets
/** Open sockets per process, about 10 KiB each when idle; beyond it new ones are refused with 503. */
export const socketsMax = 50_000
/** Sockets per user over all devices, and per address, which many users may share. */
export const socketsPerUserMax = 500
export const socketsPerAddressMax = 25_000
/**
 * Unread bytes of all sockets together; beyond it the slowest sockets are closed first. Each may have a backlog of a
 * few MiB, so a few hundred that never read would otherwise exhaust memory.
 */
export const socketsBufferedBytesMax = 256 * MiB
/** Sockets per address that have neither authenticated nor subscribed (SOCK-3). */
export const pendingSocketsMax = 5
/** Time a socket has to authenticate. */
export const socketAuthTimeoutMs = 5000
/** Interval at which the deadlines of all sockets are checked. */
export const socketTickMs = 250
/** A socket without traffic for this long is closed; the server sends pings from half of it on. */
export const socketStaleMs = 45_000
/** Interval of pings to a silent socket. */
export const socketPingMs = 10_000
/** How long the client has to answer a close frame. */
export const socketCloseMs = 3000
/** A slow consumer is closed when it has not read this much more in this time. */
export const socketSlowMs = 10_000
export const socketProgressBytes = 16 * KiB
/** A backlog beyond this closes the socket at once: more than is sent between two checks with the largest records. */
export const socketBacklogBytesMax = 4 * MiB
/** The runtime's own bound on a socket's buffer, for single messages larger than the backlog bound. */
export const socketBufferBytesMax = 32 * MiB
/** Queued messages per socket: a second's worth, and the ones that the rate limit does not count. */
export const socketMessagesWaitingMax = 128
/** The largest message before authentication: a token and a few members. */
export const socketPendingMessageBytesMax = 64 * KiB
/** The largest message of any protocol, a `join` with two states; a protocol may set a lower bound. */
export const socketMessageBytesMax = 21 * MiB
