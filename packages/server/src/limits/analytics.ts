/** Limits of analytics: events, the request log, reports, retention. */
import { MiB } from './units.ts'

// Events
export const trackEventsMax = 100
export const eventPropertiesMax = 50
/** Of an event's properties together, as JSON. */
export const eventPropertiesBytesMax = 4096
/** Part of the key of every count. */
export const eventNameCharsMax = 200
export const eventPropertyNameCharsMax = 128
/** Ids of this server have 36 characters; service keys may send others. */
export const eventUserIdCharsMax = 128
/** Tolerated clock skew of clients: such an event gets the current time; later ones are rejected. */
export const eventSkewMs = 10_000
/**
 * Distinct event names within the last 90 days. An application has dozens; beyond this bound names are probably
 * generated, and ranking them would take longer than a second.
 */
export const eventNamesMax = 10_000
/** Time for which a node caches accepted names: far less than the 90 days after which a name may expire. */
export const eventNamesKnownMs = 60 * 60 * 1000
/** Events per transaction: some ten milliseconds of the embedded engine. */
export const eventBatchMax = 500
/** Queued events; 503 beyond them. At most 4 KiB of properties each. */
export const eventsWaitingMax = 10_000
/** Cached last-seen entries, so that each is written once a minute; about 150 bytes each. */
export const lastSeenCachedMax = 50_000
/** What single events take at most: some ten million of 400 bytes. */
export const rawEventsBytesMax = 4096 * MiB
export const rawEventsBytesMin = MiB
/** Of one event without its name, user and properties: its id in the table and two indexes, its minute, the headers. */
export const eventRowBytes = 150

// The request log
/** Interval of flushes: including the write itself, a crash loses less than a second. */
export const requestFlushMs = 500
/** Single-request rows per flush; counts include every request. */
export const requestRowsPerFlushMax = 500
/** Distinct users of an endpoint per flush. */
export const requestUsersPerFlushMax = 5000
/** Minutes kept in memory while the database is unavailable; older ones are dropped. */
export const requestMinutesWaitingMax = 60

/** Retention of single-request rows. */
export const requestLogRetentionMs = 7 * 24 * 60 * 60 * 1000
/** Default size of single-request rows. */
export const requestLogBytesMax = 1024 * MiB
export const requestLogBytesMin = MiB
/** Bytes per row, including its index entry. */
export const requestRowBytes = 150

// Reports
/** Points per series: two weeks by minute, read and serialized in a few event-loop slices. */
export const reportPointsMax = 20_160
/** Bytes per point as JSON, at most. */
export const reportPointBytes = 160
export const eventListLimitDefault = 50
export const eventListLimitMax = 1000

// Retention
export const rawRetentionMs = 90 * 24 * 60 * 60 * 1000
/** Margin after which a day is closed, for late events and clock skew. */
export const rollUpMarginMs = 60 * 60 * 1000
/** A run without due work costs a few look-ups. */
export const rollUpIntervalMs = 60 * 1000
/** Rows removed per transaction: a few milliseconds of the embedded engine. */
export const rollUpRowsMax = 500
