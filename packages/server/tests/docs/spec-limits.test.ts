/**
 * The defaults of rules LIMIT-1 and LIMIT-2. The tests of each chapter cover their effect.
 */
import { expect, test } from 'bun:test'
import * as analytics from '../../src/limits/analytics.ts'
import * as limits from '../../src/limits/api.ts'
import * as push from '../../src/limits/push.ts'
import * as resources from '../../src/limits/resources.ts'
import * as rooms from '../../src/limits/rooms.ts'
import * as sockets from '../../src/limits/sockets.ts'
import * as storage from '../../src/limits/storage.ts'
import * as subscriptions from '../../src/limits/subscriptions.ts'
import * as users from '../../src/limits/users.ts'

const second = 1000
const hour = 3600 * second
const KB = 1024
const MB = 1024 * KB

type Row = readonly [says: string, is: number, should: number]

const rows: readonly Row[] = [
  ['database batch', limits.batchOperationsMax, 500],
  ['batch by filter', limits.batchByFilterRecordsMax, 500],
  ['orFilter', limits.orFilterConditionsMax, 5],
  ['filters of a subscription', subscriptions.subscriptionFiltersMax, 5],
  ['storage batches', storage.batchKeysMax, 100],
  ['import', users.importUsersMax, 1000],
  ['metadata of a user', users.metadataBytesMax, 16 * KB],
  ['page of the list of users', users.userListLimitDefault, 20],
  ['players of a room', rooms.roomPlayers, 100],
  ['state of a room', rooms.roomStateBytes, MB],
  ['state of a room, at most', rooms.roomStateBytesMax, 10 * MB],
  ['messages of a socket to a room, each second', rooms.roomMessageRate, 10],
  ['levels of a dot path', rooms.roomPathDepthMax, 5],
  ['an action', rooms.roomActionTimeoutMs, 5 * second],
  ['authentication of a socket', sockets.socketAuthTimeoutMs, 5 * second],
  ['pending sockets of an address', sockets.pendingSocketsMax, 5],
  ['tick of deltas', rooms.roomTickMs, 50],
  ['hibernation', rooms.roomHibernateAfterMs, 300 * second],
  ['save of a room', rooms.roomSaveIntervalMs, 60 * second],
  ['time to live of a room', rooms.roomStateTtlMs, 24 * hour],
  ['writes of a key', resources.kvWriteIntervalMs, second],
  ['ttl of a key', resources.kvTtlSecondsMin, 60],
  ['retention of push logs', push.pushLogRetentionMs, 24 * hour],
  ['entries of the push log', push.pushLogLimitDefault, 50],
  ['events of a request', analytics.trackEventsMax, 100],
  ['properties of an event', analytics.eventPropertiesMax, 50],
  ['bytes of properties', analytics.eventPropertiesBytesMax, 4096],
  ['retention of events and of the request log', analytics.rawRetentionMs, 90 * 24 * hour],
  ['events of a list', analytics.eventListLimitDefault, 50],
  ['events of a list, at most', analytics.eventListLimitMax, 1000],
  ['requests to track events', limits.rateLimitRequests.events, 100],
  ['requests in the group global', limits.rateLimitRequests.global, 10_000_000],
  ['window of a rate limit', limits.rateLimitWindowMs, 60 * second],
]

for (const [says, is, should] of rows) test(`[LIMIT-1] ${says}`, () => expect(is).toBe(should))

const open: readonly Row[] = [
  ['value of a key', resources.kvValueBytes, MB],
  ['key', resources.kvKeyBytesMax, 512],
  ['keys of a list', resources.kvListKeysMax, 1000],
  ['time of a SQL statement', resources.sqlTimeoutMs, 30 * second],
  ['rows of a SQL statement', resources.sqlRowsMax, 10_000],
  ['matches of a vector search', resources.vectorMatches, 10],
  ['matches of a vector search, at most', resources.vectorMatchesMax, 100],
  ['devices of a user', push.pushDevicesPerUserMax, 10],
  ['payload of a notification', push.pushPayloadBytesMax, 4 * KB],
  ['further attempts of a notification', push.pushRetriesMax, 3],
  ['entries of the push log, at most', push.pushLogLimitMax, 1000],
  ['requests in the group db', limits.rateLimitRequests.db, 1000],
  ['requests in the group storage', limits.rateLimitRequests.storage, 500],
  ['requests in the group auth', limits.rateLimitRequests.auth, 60],
  ['requests in the group push', limits.rateLimitRequests.push, 100],
  ['sign-ins of an address', limits.rateLimitRequests.signin, 10],
  ['sign-ups', limits.rateLimitRequests.signup, 10],
]

for (const [says, is, should] of open) test(`[LIMIT-2] ${says}`, () => expect(is).toBe(should))
