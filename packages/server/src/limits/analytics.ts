/** The numbers of analytics: events, the request log, reports, retention. Each as in `limits`. */
import { MiB } from './units.ts'

// Events (SPEC "Limits")
export const trackEventsMax = 100
export const eventPropertiesMax = 50
/** Of an event's properties together, as JSON. */
export const eventPropertiesBytesMax = 4096
/** SPEC asks for a name that is not empty; it leads the key of every count. */
export const eventNameCharsMax = 200
export const eventPropertyNameCharsMax = 128
/** Our ids have 36; others come from elsewhere by a service key. */
export const eventUserIdCharsMax = 128
/** A client's clock may be a little fast; such an event happened now. CONTRACT refuses what is ahead. */
export const eventSkewMs = 10_000
/**
 * Names with events of the last 90 days. A program has dozens; beyond this somebody makes them up, and a list of the
 * most frequent would take longer than a second.
 */
export const eventNamesMax = 10_000
/** How long a node goes by the names it knows: far less than the 90 days after which one may be forgotten. */
export const eventNamesKnownMs = 60 * 60 * 1000
/** Events that share a transaction: some ten milliseconds of the embedded engine. */
export const eventBatchMax = 500
/** Events that wait for one; beyond it they are refused with 503. At most 4 KiB of properties each. */
export const eventsWaitingMax = 10_000
/** Who was seen last in which minute, remembered so that it is written once a minute; about 150 bytes each. */
export const sightingsRememberedMax = 50_000
/** What single events take at most: some ten million of 400 bytes. */
export const rawEventsBytesMax = 4096 * MiB
export const rawEventsBytesMin = MiB
/** Of one event without its name, user and properties: its id in the table and two indexes, its minute, the headers. */
export const eventRowBytes = 150

// The request log
/** How often requests are written down: with the write itself, a crash loses less than a second. */
export const requestFlushMs = 500
/** Rows kept of single requests between two writes; the counts miss none. */
export const requestRowsPerFlushMax = 500
/** Users of an endpoint told apart between two writes. */
export const requestUsersPerFlushMax = 5000
/** Minutes that wait to be written while the database is away; older ones are dropped. */
export const requestMinutesWaitingMax = 60

/** CONTRACT: how long rows of single requests are kept. */
export const requestLogRetentionMs = 7 * 24 * 60 * 60 * 1000
/** CONTRACT: what they take at most. */
export const requestLogBytesMax = 1024 * MiB
export const requestLogBytesMin = MiB
/** Of one row, with its part of the index. */
export const requestRowBytes = 150

// Reports (SPEC "Limits")
/** Points of a series: two weeks by the minute, of which reading and writing take a few slices. */
export const reportPointsMax = 20_160
/** Of one as JSON, at most. */
export const reportPointBytes = 160
export const eventListLimitDefault = 50
export const eventListLimitMax = 1000

// Retention (SPEC "Limits")
export const rawRetentionMs = 90 * 24 * 60 * 60 * 1000
/** A day is closed this long after its last event could come, whatever the nodes' clocks. */
export const rollUpMarginMs = 60 * 60 * 1000
/** Where nothing is due it costs a few look-ups. */
export const rollUpIntervalMs = 60 * 1000
/** Rows removed in one transaction: a few milliseconds of the embedded engine. */
export const rollUpRowsMax = 500
