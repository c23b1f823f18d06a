/** Push notifications. Connects devices, topics, providers and sending, and implements the endpoints. */

import { type Caller, requireUser, type UserCaller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { jsonBytes } from '../../base/text/json.ts'
import type { PushConfig } from '../../config/sections/push/push.ts'
import type { RoomPush } from '../../config/sections/rooms/room-code.ts'
import type { Sql, Transaction } from '../../engines/sql/sql.ts'
import { invalidField, notFound, pushNotConfigured } from '../../errors.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import { drainTimeoutMs } from '../../limits/api.ts'
import { pushDeviceMetadataBytesMax } from '../../limits/push.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Feature } from '../feature.ts'
import { createDelivery } from './delivery.ts'
import { createDevices, type Device, type Ending, topicOfAll } from './devices.ts'
import { type PushHandlers, pushEndpoints } from './endpoints.ts'
import { createFcm } from './fcm.ts'
import { createLogs } from './logs.ts'
import { parsePayload, payloadOf } from './message.ts'
import { preparePushTables } from './migrations.ts'
import { createSending, type Providers, type Sending, type Tally } from './sending.ts'
import { checkToken } from './subscription.ts'
import { createTopicSync } from './topic-sync.ts'
import { createTopics, parseTopic } from './topics.ts'
import { createWebPush } from './web-push.ts'

export interface PushDeps {
  readonly sql: Sql
  readonly config: () => PushConfig
  /** Whether the caller's user and session are active; locks both until the transaction ends. */
  readonly lockActiveUser: (tx: Transaction, user: UserCaller) => Promise<boolean>
  /** Largest JSON response, in bytes. */
  readonly responseBytes: () => number
  /** Seals cursors. */
  readonly secret: string
  readonly clock: Clock
  readonly log: Log
}

export interface Push extends Feature {
  /** `room.push`. */
  readonly room: RoomPush
  /** Removes the devices of an ending session, in the transaction that ends it. */
  forget(tx: Transaction, ending: Ending): void
}

/** A device as its user sees it, without the metadata that service keys write. */
const show = ({ id, token, platform, userId, createdAtMs }: Device) => ({
  id,
  token,
  platform,
  userId,
  createdAt: formatDatetime(createdAtMs),
})

const ok = json({ ok: true })
const accepted = json({ success: true })
const tallied = (tally: Tally) => json({ ok: true, ...tally })

/** The providers of the current configuration; recreated after a reload. */
function createProviders(config: () => PushConfig, clock: Clock): () => Providers {
  let of: PushConfig | null = null
  let made: Providers = { fcm: null, web: null }
  return () => {
    const current = config()
    if (of === current) return made
    of = current
    const { fcm, vapid } = current
    made = { fcm: fcm && createFcm(fcm, clock), web: vapid && createWebPush(vapid, clock) }
    return made
  }
}

/** Creates missing tables. */
export async function openPush(deps: PushDeps): Promise<Push> {
  const { sql, config, lockActiveUser, responseBytes, secret, clock, log } = deps
  const cursors = createListCursors<[id: string]>(secret, 'push logs')
  const tables = await preparePushTables(sql)
  const providers = createProviders(config, clock)
  const delivery = createDelivery({ clock })
  const devices = createDevices({ tables, lockActiveUser, clock })
  const topics = createTopics(tables, clock)
  const logs = createLogs(tables, clock)
  const topicSync = createTopicSync({ tables, fcm: () => providers().fcm, delivery, clock, log })
  const onDevicesRemoved = topicSync.schedule
  const sending: Sending = createSending({ tables, devices, topics, logs, delivery, providers, onDevicesRemoved, log })
  const trusts = (origin: string): boolean => config().vapid?.localServices.has(origin) ?? false

  /** Returns how many devices have the requested state, and how many will get it later. */
  async function changeTopic(
    caller: Caller,
    written: string,
    isWanted: boolean,
  ): Promise<[done: number, failed: number]> {
    const { auth } = requireUser(caller)
    const topic = parseTopic(written)
    const { fcm, web } = providers()
    if (!fcm && !web) {
      if ((await devices.list(auth.id)).length === 0) throw notFound('Device')
      throw pushNotConfigured()
    }
    const { devices: changed, leasedTokens } = await topics.change(auth.id, topic, isWanted)
    const unsynced = leasedTokens.length === 0 ? new Set<string>() : await topicSync.syncTopic(topic, leasedTokens)
    const isFailed = ({ kind, token }: Device): boolean => (kind === 'web' ? !web : !fcm || unsynced.has(token))
    const failed = changed.filter(isFailed).length
    return [changed.length - failed, failed]
  }

  const handlers: PushHandlers = {
    async register({ caller, body: { deviceId: id, token, platform } }) {
      const user = requireUser(caller)
      checkToken(token, platform, trusts)
      const device = await devices.register(user, { id, token, platform })
      topicSync.schedule()
      return json(show(device))
    },
    async unregister({ caller, body }) {
      await devices.unregister(requireUser(caller).auth.id, body)
      topicSync.schedule()
      return ok
    },
    async subscribe({ caller, body: { topic } }) {
      const [subscribed, failed] = await changeTopic(caller, topic, true)
      return json({ ok: true, subscribed, failed })
    },
    async unsubscribe({ caller, body: { topic } }) {
      const [unsubscribed, failed] = await changeTopic(caller, topic, false)
      return json({ ok: true, unsubscribed, failed })
    },
    send: async ({ body }) => tallied(await sending.toUser(body.userId, payloadOf(body))),
    sendMany: async ({ body }) => tallied(await sending.toUsers(body.userIds, payloadOf(body))),
    async sendToToken({ body: { token, platform, payload } }) {
      checkToken(token, platform, trusts)
      return tallied(await sending.toToken(token, platform, parsePayload(payload)))
    },
    async sendToTopic({ body: { topic, payload } }) {
      await sending.toTopic(parseTopic(topic), parsePayload(payload))
      return accepted
    },
    async broadcast({ body: { payload } }) {
      await sending.toTopic(topicOfAll, parsePayload(payload))
      return accepted
    },
    async setMetadata({ body: { userId, deviceId, metadata } }) {
      if (jsonBytes(metadata) > pushDeviceMetadataBytesMax)
        throw invalidField('metadata', 'max', `must be at most ${pushDeviceMetadataBytesMax} bytes as JSON`)
      await devices.setMetadata(userId, deviceId, metadata)
      return ok
    },
    tokens: async ({ query: { userId } }) =>
      json({ tokens: (await devices.list(userId)).map((device) => ({ ...show(device), metadata: device.metadata })) }),
    async logs({ query: { userId, limit, cursor } }) {
      const list = [userId ?? null]
      const [after] = cursor === undefined ? [null] : cursors.parse(list, cursor)
      const found = await logs.list(userId ?? null, { limit, after })
      const { items, isCut } = await fitItems(found, itemBytesMax(responseBytes()))
      const last = isCut ? items.at(-1) : undefined
      return json({ logs: items, ...(last ? { truncated: true, cursor: cursors.format(list, [last.id]) } : {}) })
    },
  }

  // Continues what a killed server left unsynced.
  topicSync.schedule()
  /** Ends retry pauses and waits a bounded time for pending messages. */
  async function drain(): Promise<void> {
    delivery.skipPauses()
    let timer: ReturnType<typeof setTimeout> | undefined
    const inTime = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, drainTimeoutMs)
    })
    await Promise.race([Promise.all([sending.idle(), topicSync.idle()]), inTime])
    clearTimeout(timer)
  }

  /** Removes old logs and syncs FCM topics. */
  async function cleanUp(): Promise<void> {
    await logs.trim()
    topicSync.schedule()
    await topicSync.idle()
  }

  return {
    name: 'push',
    endpoints: pushEndpoints(handlers),
    jobs: [{ name: 'push.tidy', intervalMs: housekeepingIntervalMs, run: cleanUp }],
    metrics(metrics) {
      metrics.counter('push_sent_total', 'Messages accepted by a provider.', () => sending.counts.sent)
      metrics.counter(
        'push_failed_total',
        'Messages that could not be delivered to a provider.',
        () => sending.counts.failed,
      )
      metrics.counter(
        'push_removed_total',
        'Messages whose device was unregistered and has been removed.',
        () => sending.counts.removed,
      )
      metrics.counter('push_retries_total', 'Delivery attempts after the first.', () => delivery.retries)
    },
    drain: { stage: 'requests', run: drain },
    room: {
      // A user without a device must not fail the action.
      send: async (userId, message) => ({ ok: true, ...(await sending.toUsers([userId], parsePayload(message))) }),
    },
    forget(tx, ending) {
      devices.forgetEnded(tx, ending)
      tx.afterCommit(topicSync.schedule)
    },
  }
}
