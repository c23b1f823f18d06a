/** The numbers of the users feature: accounts, sessions, mail, second factors, providers. Each as in `limits`. */

import { tokenCacheEntriesMax } from './api.ts'
import { KiB, MiB } from './units.ts'

// Second factors and passkeys
/** RFC 4226 recommends 160 bits. */
export const totpSecretBytes = 20
/** Authenticator apps know no other step. */
export const totpStepMs = 30_000
/** CONTRACT "Users": one step of clock drift is tolerated, either way. */
export const totpDriftStepsMax = 1
/** CONTRACT "Users". */
export const recoveryCodesPerUser = 8
/** 60 random bits in the 32 letters of a recovery code, three groups of four: quick to type, hopeless to guess. */
export const recoveryCodeChars = 12
/** Tickets have 43 characters, ids 36, codes fewer. */
export const mfaTextCharsMax = 128
/** Wrong codes on one ticket; then the first factor must be shown again. */
export const mfaTicketAttemptsMax = 5
/**
 * Codes one user may try in a window, whatever tickets, sessions and nodes they arrive by. Three codes of a million
 * are good at any time, so a thief of the password gets in with 0.2 % a day.
 */
export const mfaAttemptsPerUserMax = 30
export const mfaAttemptsWindowMs = 60 * 60 * 1000
/** How long after a sign-in another way in may be added to a well-guarded account: nobody has left the screen yet. */
export const recentSignInMs = 10 * 60 * 1000
/** A person's devices and keys; each is one more way in to look after. */
export const passkeysPerUserMax = 20
export const passkeyNameCharsMax = 100
/** WebAuthn: 1,023 bytes, here in base64url. */
export const passkeyIdCharsMax = 1364
/** An RSA key of 4,096 bits, the largest in use, takes 550 bytes. */
export const passkeyPublicKeyBytesMax = KiB
/** An attestation with a maker's chain of certificates is about 10 KiB. */
export const passkeyBodyBytesMax = 64 * KiB
/** Time to find the key and touch it; what browsers wait at most by themselves is 10 minutes. */
export const passkeyChallengeLifetimeMs = 5 * 60 * 1000

// Mail and one-time tokens
/** Wrong tries at a six-digit code; with a few codes an hour nobody gets far into a million. */
export const oneTimeCodeAttemptsMax = 5
/** 32 bytes in base64url are 43 characters; more is no token. */
export const oneTimeTokenCharsMax = 64
/** Expired tokens removed at once, so that the sweep never holds other writers for long. */
export const oneTimeTokensSweptMax = 1000
/** Long enough to find the mail on another device, short enough for a mailbox that somebody else opens later. */
export const magicLinkLifetimeMs = 15 * 60 * 1000
/** Of a six-digit code: as long as it takes to type it. */
export const emailCodeLifetimeMs = 10 * 60 * 1000
export const passwordResetLifetimeMs = 60 * 60 * 1000
export const emailChangeLifetimeMs = 60 * 60 * 1000
/** Nothing but the address is at stake: mails are read a day later. */
export const emailVerificationLifetimeMs = 24 * 60 * 60 * 1000
/** Mails to be sent by one process, a few KiB each; beyond it further ones are dropped, and the log says so. */
export const mailQueueMax = 1000
/** Connections to the mail server; some providers refuse a client with more. */
export const mailConnectionsMax = 4
/** An idle connection to the mail server is closed before most servers would. */
export const mailIdleMs = 30_000
/** For a connection, and then for the server's greeting. */
export const mailConnectTimeoutMs = 10_000
/** Silence of the mail server in the middle of a conversation. */
export const mailSocketTimeoutMs = 20_000
/** A whole delivery: also a server that trickles must not hold a connection. */
export const mailDeliveryTimeoutMs = 60_000
/** Pauses before the second and later attempts; together shorter than the life of the shortest code. */
export const mailRetryDelaysMs = [1000, 5000, 30_000, 120_000] as const
/** What is queued at the end gets this long, of which a stop of the process has room for. */
export const mailDrainTimeoutMs = 5000
/** What one value may add to a mail: more than the longest link, a redirect URL with an escaped `state` and a token. */
export const mailValueCharsMax = 4096
/** RFC 5322: at most 998 characters a line; more than this is no subject. */
export const mailSubjectCharsMax = 200
/** Mails kept in the outbox folder of development mode. */
export const outboxMailsMax = 100

// Admin users
/** SPEC "Admin users". */
export const userListLimitDefault = 20
/** CONTRACT "Admin users"; more is clamped. */
export const userListLimitMax = 1000
/** SPEC "Limits". */
export const importUsersMax = 1000
/** Of what an import says of one entry, beyond which it is cut and its fields are not listed as well. */
export const importErrorCharsMax = 500
/** A thousand users with the most metadata each; a service key alone may send it. */
export const importBodyBytesMax = 36 * MiB
/** Imports at once in one process, each with a body of its own in memory. */
export const importsMax = 2
/** Users of one import on their way to the database: enough to share commits, few enough to leave connections. */
export const importUsersAtOnce = 16
/**
 * An import stops hashing after this: six times what a thousand passwords take on one processor. HTTP clients give up
 * after 300 s.
 */
export const importTimeoutMs = 200_000
/** Time for the last hashes and the answer beyond that; the runtime knows no more than 255. */
export const importAnswerSeconds = 240
/** The link that a server without an administrator prints. */
export const setupTokenLifetimeMs = 24 * 60 * 60 * 1000
/** 32 bytes in base64url, with room to spare. */
export const setupTokenCharsMax = 64

// Users (SPEC "Limits", CONTRACT "Users")
/** RFC 5321: what a mail server takes. */
export const emailCharsMax = 254
export const emailLocalPartCharsMax = 64
/** CONTRACT "Users": 28 days since the last refresh. */
export const refreshTokenLifetimeMs = 28 * 24 * 60 * 60 * 1000
/** A client whose answer was lost may ask again this long. */
export const refreshGraceMs = 30_000
/** Sessions of one user; opening one more ends the one unused for longest. */
export const sessionsPerUserMax = 100
/** Expired sessions forgotten at once, so that the sweep never holds other writers for long. */
export const sessionsSweptMax = 1000
/** How long a session that was found alive counts as alive without a message to the contrary. */
export const sessionCheckMs = 3000
/**
 * Sources that may together try an address's passwords and codes: five times `rateLimits.signin` is 50 a minute, so one
 * source cannot use it up and a thousand sources guess no faster.
 */
export const passwordSourcesFactor = 5
/** Sources that may together cause mails to an address: four times `rateLimits.mail` is 20 an hour. */
export const mailSourcesFactor = 4
/** A device that signs in twice a year stays known. */
export const deviceTokenLifetimeMs = 180 * 24 * 60 * 60 * 1000
/** Ours have 76 characters. */
export const deviceTokenCharsMax = 128
/** What an app wants to find again in the link of a mail: a nonce, an id, a path. */
export const mailStateCharsMax = 256
/** Users whose tokens are known to be alive; about 200 bytes each. */
export const revocationEpochsMax = tokenCacheEntriesMax
/** An unknown key id in a token makes a node look for keys that another has made, at most this often. */
export const signingKeyReloadIntervalMs = 1000
/** Generations of keys of which a good token may be about: more than anybody rotates in 28 days on purpose. */
export const signingKeysMax = 50
export const metadataBytesMax = 16 * KiB
export const customClaimsBytesMax = 4 * KiB
export const displayNameCharsMax = 200
export const avatarUrlCharsMax = 2 * KiB
export const roleCharsMax = 64
export const userAgentCharsMax = 512
/** argon2id as OWASP advises for servers: 19 MiB, two passes, one lane. */
export const passwordMemoryKiB = 19 * KiB
export const passwordPasses = 2
/** Passwords waiting to be hashed; at 50 ms each, beyond it nobody would wait for the answer: 503. */
export const passwordsWaitingMax = 200
/** Of imported hashes (CONTRACT "Users"): more would make a sign-in an attack. */
export const bcryptCostMax = 14
export const pbkdf2IterationsMax = 5_000_000
/** A ticket for the second factor: long enough to find the telephone. */
export const mfaTicketLifetimeMs = 5 * 60 * 1000

// Sign-in through other providers
/** From leaving for the provider to coming back: a password, a second factor and a consent there. */
export const oauthFlowLifetimeMs = 10 * 60 * 1000
/** Between two requests of one page, with nobody typing in between. */
export const oauthTicketLifetimeMs = 2 * 60 * 1000
/** One question to a provider; a sign-in asks at most five. */
export const oauthFetchTimeoutMs = 5000
/** Discovery documents, key sets and profiles are some KiB; the largest in use is below 100. */
export const oauthResponseBytesMax = 256 * KiB
/** How long a provider's discovery document is believed; its keys are asked for again after five minutes. */
export const oauthDiscoveryMs = 60 * 60 * 1000
/** What Apple posts back: a code, the state, and a name the first time. */
export const oauthFormBytesMax = 16 * KiB
/** OpenID Connect: a subject has at most 255 characters; some providers are larger. */
export const oauthSubjectCharsMax = 512
/** Where people are sent back to: long enough for any page of an app. */
export const redirectUrlCharsMax = 2 * KiB
export const identitiesPerUserMax = 20
