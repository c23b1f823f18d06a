/** Limits of the users feature: accounts, sessions, mail, second factors, passkeys and providers. */

import { tokenCacheEntriesMax } from './api.ts'
import { KiB, MiB } from './units.ts'

// Second factors and passkeys
/** RFC 4226 recommends 160 bits. */
export const totpSecretBytes = 20
/** Authenticator apps support no other step. */
export const totpStepMs = 30_000
/** Clock drift tolerated in either direction, in steps (MFA-4). */
export const totpDriftStepsMax = 1
/** MFA-1. */
export const recoveryCodesPerUser = 8
/** 60 random bits in an alphabet of 32 letters: three groups of four, quick to type and infeasible to guess. */
export const recoveryCodeChars = 12
/** For tickets (43 characters), ids (36) and codes (fewer). */
export const mfaTextCharsMax = 128
/** Wrong codes per ticket; then the sign-in must start again. */
export const mfaTicketAttemptsMax = 5
/**
 * Codes that a user may try in a window, across all tickets, sessions and nodes. Three codes of a million are valid at
 * any time, so an attacker who has the password succeeds with a probability of 0.2 % per day.
 */
export const mfaAttemptsPerUserMax = 30
export const mfaAttemptsWindowMs = 60 * 60 * 1000
/** How long after a sign-in a sign-in method may be added or removed: the user is likely still at the screen. */
export const recentSignInMs = 10 * 60 * 1000
/** Enough for the devices and security keys of a person. */
export const passkeysPerUserMax = 20
export const passkeyNameCharsMax = 100
/** WebAuthn allows 1,023 bytes; these are base64url characters. */
export const passkeyIdCharsMax = 1364
/** An RSA key of 4,096 bits, the largest in use, takes 550 bytes. */
export const passkeyPublicKeyBytesMax = KiB
/** An attestation with a manufacturer's certificate chain is about 10 KiB. */
export const passkeyBodyBytesMax = 64 * KiB
/** Time to find the authenticator and touch it. Browsers wait at most 10 minutes. */
export const passkeyChallengeLifetimeMs = 5 * 60 * 1000

// Mail and one-time tokens
/** Wrong attempts per six-digit code; with a few codes an hour, guessing one of a million is infeasible. */
export const oneTimeCodeAttemptsMax = 5
/** 32 bytes in base64url are 43 characters. */
export const oneTimeTokenCharsMax = 64
/** Expired tokens deleted per transaction, so that the sweep never blocks other writers for long. */
export const oneTimeTokensSweptMax = 1000
/** Long enough to open the mail on another device, short enough if another person opens the mailbox later. */
export const magicLinkLifetimeMs = 15 * 60 * 1000
/** Lifetime of a six-digit code, which is typed soon after it arrives. */
export const emailCodeLifetimeMs = 10 * 60 * 1000
export const passwordResetLifetimeMs = 60 * 60 * 1000
/** A week: people who are invited have not asked for the mail and read it later. */
export const invitationLifetimeMs = 7 * 24 * 60 * 60 * 1000
export const emailChangeLifetimeMs = 60 * 60 * 1000
/** Long, because the link only verifies an address and mail may be read a day later. */
export const emailVerificationLifetimeMs = 24 * 60 * 60 * 1000
/** Queued mails per process, a few KiB each. Further mails are dropped and logged. */
export const mailQueueMax = 1000
/** Connections to the mail server; some providers reject clients with more. */
export const mailConnectionsMax = 4
/** Idle connections are closed before most mail servers would close them. */
export const mailIdleMs = 30_000
/** Applies to the connection and again to the greeting of the server. */
export const mailConnectTimeoutMs = 10_000
/** Idle timeout during a conversation with the mail server. */
export const mailSocketTimeoutMs = 20_000
/** Total time of a delivery, so that a slow server cannot occupy a connection. */
export const mailDeliveryTimeoutMs = 60_000
/** Delays before the second and later attempts; their sum is shorter than the shortest token lifetime. */
export const mailRetryDelaysMs = [1000, 5000, 30_000, 120_000] as const
/** Time to send queued mails at shutdown; fits in the shutdown deadline. */
export const mailDrainTimeoutMs = 5000
/**
 * Length of a value in a mail: more than the longest link, which is a redirect URL with an escaped `state` and a token.
 */
export const mailValueCharsMax = 4096
/** RFC 5322 allows 998 characters per line; no useful subject is longer than this. */
export const mailSubjectCharsMax = 200
/** Mails kept in the outbox folder of development mode. */
export const outboxMailsMax = 100

// Admin users
/** ADMIN-2. */
export const userListLimitDefault = 20
/** ADMIN-2; larger values are clamped. */
export const userListLimitMax = 1000
/** Longer than any name or address that is typed. */
export const userSearchCharsMax = 320
/** IMPORT-1. */
export const importUsersMax = 1000
/** Length of the error of an import entry. A longer one is cut, and its fields are not listed. */
export const importErrorCharsMax = 500
/** A thousand users with maximum metadata. Only service keys may send it. */
export const importBodyBytesMax = 36 * MiB
/** Concurrent imports per process; each keeps its body in memory. */
export const importsMax = 2
/** Concurrent inserts per import: enough to share commits, few enough to leave connections to others. */
export const importUsersAtOnce = 16
/**
 * Deadline for hashing in an import: six times what a thousand passwords take on one processor. HTTP clients commonly
 * time out after 300 s.
 */
export const importTimeoutMs = 200_000
/** Adds time for the last hashes and the response; the runtime allows at most 255. */
export const importAnswerSeconds = 240
/** Lifetime of the set-up link of a server without an administrator. */
export const setupTokenLifetimeMs = 24 * 60 * 60 * 1000
/** 32 bytes in base64url are 43 characters. */
export const setupTokenCharsMax = 64

// Users
/** RFC 5321. */
export const emailCharsMax = 254
export const emailLocalPartCharsMax = 64
/** 28 days since the last refresh (SESS-4). */
export const refreshTokenLifetimeMs = 28 * 24 * 60 * 60 * 1000
/** How long a client whose response was lost may repeat a refresh (SESS-2). */
export const refreshGraceMs = 30_000
/** Sessions per user; one more ends the least recently used one (SESS-7). */
export const sessionsPerUserMax = 100
/** Expired sessions deleted per transaction, so that the sweep never blocks other writers for long. */
export const sessionsSweptMax = 1000
/** How long a checked session is trusted without reading it again, unless a revocation arrives (SESS-9). */
export const sessionCheckMs = 3000
/**
 * Multiple of the per-source limit that all sources of an address share for passwords and codes. Five times
 * `rateLimits.signin` is 50 a minute: one source cannot use it up, and a thousand sources guess no faster.
 */
export const passwordSourcesFactor = 5
/** Multiple of the per-source limit that all sources share for mails to an address: 20 an hour by default. */
export const mailSourcesFactor = 4
/** Devices that sign in twice a year stay known. */
export const deviceTokenLifetimeMs = 180 * 24 * 60 * 60 * 1000
/** Device tokens have 76 characters. */
export const deviceTokenCharsMax = 128
/** Room for a nonce, an id or a path. */
export const mailStateCharsMax = 256
/** A language tag with three subtags. */
export const localeCharsMax = 35
/** Users with cached tokens; about 200 bytes each. */
export const revocationEpochsMax = tokenCacheEntriesMax
/** Minimum interval of reloads for unknown key ids in tokens, which may be keys that another node created. */
export const signingKeyReloadIntervalMs = 1000
/** Valid generations of signing keys: more rotations than make sense in 28 days. */
export const signingKeysMax = 50
export const metadataBytesMax = 16 * KiB
export const customClaimsBytesMax = 4 * KiB
/** Questions to hooks in one transaction: that of a sign-up, that of its claims, and repetitions after changes. */
export const hookAnswersMax = 6
/** JSON that a hook of sign-ups may return: two objects of `metadataBytesMax`, escaped, and the short fields. */
export const signUpDataCharsMax = 128 * KiB
export const displayNameCharsMax = 200
export const avatarUrlCharsMax = 2 * KiB
export const roleCharsMax = 64
export const userAgentCharsMax = 512
/** argon2id as recommended by OWASP for servers: 19 MiB, two passes, one lane. */
export const passwordCost = { memoryKiB: 19 * KiB, passes: 2 }
/**
 * Passwords that wait to be hashed: at 50 ms each, a caller would not wait for more, and gets 429 for the next; 503
 * beyond the length.
 */
export const passwordsWaiting = { waiting: 400, waitingPerCaller: 200, waitMs: null }
/** Cost limits of imported hashes (IMPORT-6): a higher cost would turn sign-ins into a denial of service. */
export const bcryptCostMax = 14
export const pbkdf2IterationsMax = 5_000_000
/** Lifetime of a second-factor ticket: enough to get the phone. */
export const mfaTicketLifetimeMs = 5 * 60 * 1000

// Sign-in through other providers
/** From the redirect to the callback: time for a password, a second factor and consent at the provider. */
export const oauthFlowLifetimeMs = 10 * 60 * 1000
/** Between two requests of one page, without user input in between. */
export const oauthTicketLifetimeMs = 2 * 60 * 1000
/** Per request to a provider; a sign-in makes at most five. */
export const oauthFetchTimeoutMs = 5000
/** Discovery documents, key sets and profiles take a few KiB; the largest known is below 100. */
export const oauthResponseBytesMax = 256 * KiB
/** Cache lifetime of a discovery document. Key sets are reloaded after five minutes. */
export const oauthDiscoveryMs = 60 * 60 * 1000
/** Apple posts a code, the state, and the name at the first sign-in. */
export const oauthFormBytesMax = 16 * KiB
/** OpenID Connect allows 255 characters; some providers exceed that, and the issuer is prepended. */
export const oauthSubjectCharsMax = 512
/** Long enough for any page of an app. */
export const redirectUrlCharsMax = 2 * KiB
export const identitiesPerUserMax = 20
