/** The numbers of push notifications: devices, messages, providers, jobs. Each as in `limits`. */
import { KiB } from './units.ts'

// Devices and topics (CONTRACT "Push")
export const pushDevicesPerUserMax = 10
export const pushDeviceIdCharsMax = 128
/** FCM's tokens have some 160 characters, a browser's subscription as JSON some 500. */
export const pushTokenCharsMax = 4 * KiB
/** The longest name that FCM takes. */
export const pushTopicCharsMax = 900
/** FCM allows a device 2,000; each costs a call to it when a token changes. */
export const pushTopicsPerDeviceMax = 200
export const pushDeviceMetadataBytesMax = 4 * KiB

// Messages
/** CONTRACT: of the payload as JSON, whatever is made of it for a provider; FCM's own bound. */
export const pushPayloadBytesMax = 4 * KiB
/** Both as long as a notification shows at the very most; what is shown is shorter everywhere. */
export const pushCollapseIdBytesMax = 64
export const pushSoundCharsMax = 128
export const pushImageCharsMax = 2 * KiB
/** Four weeks: what FCM and push services keep a message for at most. */
export const pushTtlSecondsMax = 28 * 24 * 60 * 60
/** RFC 8291: a message of 4,096 bytes less its header, padding and tag. */
export const webPushPlainBytesMax = 3993
/** RFC 8030: what the header `Topic` may hold. */
export const webPushTopicCharsMax = 32

// Sending
/** Of one request: 390 KB of ids. */
export const pushUsersMax = 10_000
/** 10,000 users, 64 messages at a time, at 100 ms each, are 16 s; retries and slow providers take their time. */
export const pushAnswerSeconds = 240
/** Messages under way to providers at once, each with a connection. */
export const pushSendsAtOnceMax = 64
/** Of these, how many one job has: three others find room beside it. */
export const pushJobSendsMax = 16
/** Jobs for many at once, and waiting behind them; beyond it 503. */
export const pushJobsAtOnceMax = 8
export const pushJobsWaitingMax = 64
/** Messages of single requests and jobs that wait for their turn; each holds a payload. */
export const pushSendsWaitingMax = 10_000
/** Users whose devices are read at once: at most 1,000 devices. */
export const pushUsersPerReadMax = 100
/** Devices of a topic that are read at once. */
export const pushDevicesPerReadMax = 500

// Providers
export const pushRequestTimeoutMs = 10_000
export const pushAnswerBytesMax = 64 * KiB
/** CONTRACT: further attempts after 429 and 5xx. */
export const pushRetriesMax = 3
/** The pause before the first of them; each further one is twice as long. */
export const pushRetryPauseMs = 1000
/** A provider that asks for a longer pause than this is not waited for. */
export const pushRetryAfterMaxMs = 60_000
/** An access token is renewed so long before it ends. */
export const fcmTokenMarginMs = 60_000
/** Google's longest life of an assertion. */
export const fcmAssertionLifetimeMs = 60 * 60 * 1000
/** After credentials were refused, they are not tried again for so long. */
export const fcmRefusalMs = 5000
/** Tokens in one call of the Instance ID API. */
export const fcmTopicTokensMax = 1000
/** Whoever tells FCM of memberships begins no call later than this after taking them. */
export const topicSyncBudgetMs = 60_000
/** How long they are nobody else's: a turn, and a call with every retry and the longest pauses (220 s). */
export const dirtyFlagLeaseMs = 5 * 60_000
/** FCM is told again after this pause. */
export const topicRetryMs = 60_000
/** RFC 8292 allows a day; a token is made anew with half of this left. */
export const vapidLifetimeMs = 12 * 60 * 60 * 1000
/** Push services whose tokens are kept. */
export const vapidTokensMax = 100

// Logs (SPEC "Limits")
export const pushLogRetentionMs = 24 * 60 * 60 * 1000
/** Entries removed in one transaction. */
export const pushLogsTrimmedMax = 500
export const pushLogLimitDefault = 50
export const pushLogLimitMax = 1000
/** What a provider says of a failure, cut. */
export const pushErrorCharsMax = 200
