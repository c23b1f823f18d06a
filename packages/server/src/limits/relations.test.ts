/** Relations between limits: a number that is changed alone must not break one that depends on it. */
import { expect, test } from 'bun:test'
import * as api from './api.ts'
import * as jobs from './jobs.ts'
import * as postgres from './postgres.ts'
import * as redis from './redis.ts'
import * as resources from './resources.ts'
import * as rooms from './rooms.ts'
import * as sockets from './sockets.ts'
import * as sqlite from './sqlite.ts'
import * as storage from './storage.ts'
import * as subscriptions from './subscriptions.ts'
import * as users from './users.ts'
import * as writes from './writes.ts'

/** `[reason, smaller, larger]`: the first number must be below the second. */
const below: [string, number, number][] = [
  ['a revoked session ends before its access token expires', users.sessionCheckMs, api.accessTokenLifetimeMs],
  ['a refresh token outlives the access token it renews', api.accessTokenLifetimeMs, users.refreshTokenLifetimeMs],
  ['a parallel refresh is accepted only for a moment', users.refreshGraceMs, api.accessTokenLifetimeMs],
  ['an owner stops before another node may take its room', rooms.roomNodeMarginMs, rooms.roomNodeLeaseMs],
  [
    'a lease survives two renewals that fail',
    3 * rooms.roomNodeRenewMs + rooms.roomNodeMarginMs,
    rooms.roomNodeLeaseMs + 1,
  ],
  ['a join carries two states', 2 * rooms.roomStateBytesMax, sockets.socketMessageBytesMax],
  ['a job renews its lease before it expires', jobs.jobClockSkewMs, jobs.jobLeaseMs],
  ['a backup renews its lease twice before it expires', 2 * jobs.backupLeaseRenewMs, jobs.backupLeaseMs],
  ['a backup outlives the pause of writers it asked for', jobs.backupPauseMs, jobs.backupLeaseMs],
  ['a silent socket gets a ping before it counts as gone', sockets.socketPingMs, sockets.socketStaleMs],
  [
    'a backlog is refused before the runtime drops the socket',
    sockets.socketBacklogBytesMax,
    sockets.socketBufferBytesMax,
  ],
  ['one socket cannot take the memory of all', sockets.socketBufferBytesMax, sockets.socketsBufferedBytesMax],
  ['one user cannot take the sockets of an address', sockets.socketsPerUserMax, sockets.socketsPerAddressMax],
  ['one address cannot take all sockets', sockets.socketsPerAddressMax, sockets.socketsMax],
  ['rooms end before requests at shutdown', api.closeRoomsMs, api.closeRequestsMs],
  ['requests end before the deadline of shutdown', api.closeRequestsMs, api.closeMs],
  ['an envelope leaves room for items', api.responseEnvelopeBytes, api.responseBytesLeast],
  ['the default size of responses may be configured', api.responseBytesMax, api.responseBytesMost + 1],
  ['a record fits into a response', writes.recordBytesMax, api.responseBytesMax],
  ['a page of the change log holds a record', writes.recordBytesMax, subscriptions.feedPageBytesMax],
  ['a recovery pages through what it may send', subscriptions.recoveryPageBytesMax, subscriptions.recoveredBytesMax],
  [
    'one user cannot take the filters of an address',
    subscriptions.filterCharsPerUserMax,
    subscriptions.filterCharsPerAddressMax,
  ],
  [
    'the server ends a statement before its connection counts as dead',
    postgres.statementTimeoutMs,
    postgres.statementAnswerMs,
  ],
  ['a lock is given up before the statement is', postgres.postgresLockMs, postgres.statementTimeoutMs],
  ['reads leave connections to transactions', postgres.postgresSharedConnectionsMax, postgres.postgresConnectionsMax],
  ['Redis retries start below their longest pause', redis.redisRetryMinMs, redis.redisRetryMaxMs],
  [
    'the ids of a request to a vector index are stored whole as the result of an effect',
    resources.vectorBatchMax * (resources.vectorIdBytesMax + 1) - 1,
    writes.effectResultCharsMax,
  ],
  ['a log is checkpointed before writers wait for it', sqlite.walInstanceCheckpointBytes, sqlite.walCheckpointBytes],
  ['a young change survives trimming by size', sqlite.changesKeptMinMs, sqlite.changesRetentionMs],
  ['a part fits into an upload', storage.partBytesMax, storage.fileBytesMax],
  ['an unfinished upload is swept after it has expired', storage.uploadTimeoutMs, storage.stagedBlobMs],
  ['a value and its envelope fit into a body', resources.kvValueBytes, resources.kvValueBytesMax],
]

test.each(below)('%s', (_, smaller, larger) => {
  expect(smaller).toBeLessThan(larger)
})
