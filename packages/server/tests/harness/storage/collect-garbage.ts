/**
 * Loaded first by a server whose memory is measured: it collects its garbage all the time, so that its size is that of
 * what it holds. Left to itself the runtime lets hundreds of megabytes wait, the more the larger the machine is.
 */
const everyMs = 50

setInterval(() => Bun.gc(true), everyMs).unref()
