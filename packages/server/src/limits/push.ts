/** Limits of push notifications: devices, messages, providers, jobs. */
import { KiB } from './units.ts'

// Devices and topics
export const pushDevicesPerUserMax = 10
export const pushDeviceIdCharsMax = 128
/** FCM tokens have about 160 characters, web push subscriptions as JSON about 500. */
export const pushTokenCharsMax = 4 * KiB
/** FCM's limit. */
export const pushTopicCharsMax = 900
/** FCM allows 2,000 per device; each costs a call when a token changes. */
export const pushTopicsPerDeviceMax = 200
export const pushDeviceMetadataBytesMax = 4 * KiB

// Messages
/** Bytes of the payload as JSON , regardless of the provider's format; FCM's own limit. */
export const pushPayloadBytesMax = 4 * KiB
/** Longer than any notification displays. */
export const pushCollapseIdBytesMax = 64
export const pushSoundCharsMax = 128
export const pushImageCharsMax = 2 * KiB
/** Four weeks: the longest that FCM and push services keep a message. */
export const pushTtlSecondsMax = 28 * 24 * 60 * 60
/** RFC 8291: 4,096 bytes minus header, padding and tag. */
export const webPushPlainBytesMax = 3993
/** RFC 8030: the length of the `Topic` header. */
export const webPushTopicCharsMax = 32

// Sending
/** Users per request: 390 KB of ids. */
export const pushUsersMax = 10_000
/** 10,000 users at 64 concurrent messages of 100 ms each take 16 s; retries and slow providers take longer. */
export const pushAnswerSeconds = 240
/** Concurrent messages to providers, each on a connection. */
export const pushSendsAtOnceMax = 64
/** Concurrent messages per job, which leaves room for three other jobs. */
export const pushJobSendsMax = 16
/** Running and queued jobs for many recipients; 503 beyond them. */
export const pushJobsAtOnceMax = 8
export const pushJobsWaitingMax = 64
/** Queued messages; each keeps a payload in memory. */
export const pushSendsWaitingMax = 10_000
/** Users per read of devices: at most 1,000 devices. */
export const pushUsersPerReadMax = 100
/** Devices of a topic per read. */
export const pushDevicesPerReadMax = 500

// Providers
export const pushRequestTimeoutMs = 10_000
export const pushAnswerBytesMax = 64 * KiB
/** Retries after 429 and 5xx. */
export const pushRetriesMax = 3
/** Pause before the first retry; doubled for each further one. */
export const pushRetryPauseMs = 1000
/** Longest pause requested by a provider that is honored; a message with a longer one fails. */
export const pushRetryAfterMaxMs = 60_000
/** Time before its expiry at which an access token is renewed. */
export const fcmTokenMarginMs = 60_000
/** Google's longest lifetime of an assertion. */
export const fcmAssertionLifetimeMs = 60 * 60 * 1000
/** Time for which rejected credentials are not retried. */
export const fcmRefusalMs = 5000
/** Tokens per call of the Instance ID API. */
export const fcmTopicTokensMax = 1000
/** A worker starts no further FCM calls this long after leasing dirty flags. */
export const topicSyncBudgetMs = 60_000
/**
 * Lease of dirty flags: longer than `topicSyncBudgetMs` plus one call with all retries and the longest pauses (220 s).
 */
export const dirtyFlagLeaseMs = 5 * 60_000
/** Pause before a failed topic sync is retried. */
export const topicRetryMs = 60_000
/** RFC 8292 allows a day; a token is renewed after half of this time. */
export const vapidLifetimeMs = 12 * 60 * 60 * 1000
/** Cached VAPID tokens, one per push service. */
export const vapidTokensMax = 100

// Logs
export const pushLogRetentionMs = 24 * 60 * 60 * 1000
/** Entries removed in one transaction. */
export const pushLogsTrimmedMax = 500
export const pushLogLimitDefault = 50
export const pushLogLimitMax = 1000
/** What a provider says of a failure, cut. */
export const pushErrorCharsMax = 200

/** Devices that are counted before a message is sent: enough to see its size, a few milliseconds of a query. */
export const pushAudienceCountedMax = 10_000
