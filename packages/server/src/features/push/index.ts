/** The push feature: creates its parts in order of dependency and lists their endpoints. */
import type { UserCaller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { PushConfig } from '../../config/sections/push/push.ts'
import type { RoomPush } from '../../config/sections/rooms/room-code.ts'
import { mayBePublic, type OutboundPolicy } from '../../engines/fetch/public-fetch.ts'
import type { Sql, Transaction } from '../../engines/sql/sql.ts'
import type { Metrics } from '../../http/metrics.ts'
import { drainTimeoutMs } from '../../limits/api.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Feature } from '../feature.ts'
import { createAudienceEndpoint } from './audience.ts'
import { createDelivery, type Delivery } from './delivery.ts'
import { createDeviceEndpoints } from './devices/device-endpoints.ts'
import { createDevices, type Ending } from './devices/devices.ts'
import { createKeyEndpoints } from './key-endpoints.ts'
import { createLogs } from './logs.ts'
import { parsePayload } from './message.ts'
import { preparePushTables } from './migrations.ts'
import { createProviders } from './providers/providers.ts'
import { createRecordedSending, type PushRecorder, type Sender } from './recorded-sending.ts'
import { Sending } from './sending.ts'
import { createTopicMembership } from './topics/topic-membership.ts'
import { createTopicSync } from './topics/topic-sync.ts'
import { createTopics } from './topics/topics.ts'

export interface PushDeps {
  readonly sql: Sql
  readonly config: () => PushConfig
  /** Private networks that endpoints of browsers may be in. */
  readonly outboundAllow: () => OutboundPolicy['allow']
  /** Whether the caller's user and session are active; locks both until the transaction ends. */
  readonly lockActiveUser: (tx: Transaction, user: UserCaller) => Promise<boolean>
  /** Takes the messages instead of the providers; null in use. */
  readonly recorder: PushRecorder | null
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

/** Creates missing tables. */
export async function createPush(deps: PushDeps): Promise<Push> {
  const { sql, config, outboundAllow, lockActiveUser, recorder, clock, log } = deps
  const tables = await preparePushTables(sql)
  const policy = (): OutboundPolicy => ({ allow: outboundAllow(), anyPort: false })
  const providers = createProviders(config, clock, policy)
  const delivery = createDelivery({ clock })
  const devices = createDevices({ tables, lockActiveUser, clock })
  const topics = createTopics(tables, clock)
  const logs = createLogs(tables, clock)
  const topicSync = createTopicSync({ tables, fcm: () => providers().fcm, delivery, clock, log })
  const changeMembership = createTopicMembership({ devices, topics, topicSync, providers })
  const onDevicesChanged = topicSync.schedule
  const sending: Sender = recorder
    ? createRecordedSending(recorder)
    : new Sending({ tables, devices, topics, logs, delivery, providers, onDevicesChanged, log })
  const isReachable = (endpoint: URL): boolean =>
    config().vapid?.localServices.has(endpoint.origin) || mayBePublic(endpoint, policy())

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

  // Continues what a killed server left unsynced.
  topicSync.schedule()
  return {
    name: 'push',
    endpoints: [
      ...createDeviceEndpoints({ devices, changeMembership, isReachable, onDevicesChanged }),
      ...createKeyEndpoints({ ...deps, devices, sending, logs, isReachable }),
    ],
    dashboardEndpoints: [createAudienceEndpoint({ tables, providers })],
    jobs: [{ name: 'push.tidy', intervalMs: housekeepingIntervalMs, run: cleanUp }],
    metrics: (metrics) => registerMetrics(metrics, sending, delivery),
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

function registerMetrics(metrics: Metrics, { counts }: Sender, delivery: Delivery): void {
  metrics.counter('push_sent_total', 'Messages accepted by a provider.', () => counts.sent)
  metrics.counter('push_failed_total', 'Messages that could not be delivered to a provider.', () => counts.failed)
  metrics.counter(
    'push_removed_total',
    'Messages whose device was unregistered and has been removed.',
    () => counts.removed,
  )
  metrics.counter('push_retries_total', 'Delivery attempts after the first.', () => delivery.retries)
}
