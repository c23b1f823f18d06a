/**
 * Sends messages: resolves recipients, sends in batches, logs results and removes unregistered devices. `delivery`
 * makes attempts and retries. Jobs for many recipients are bounded, and are lost in a crash.
 */
import { createSemaphore } from '../../base/concurrency/semaphore.ts'
import type { Log } from '../../base/log.ts'
import { badRequest, notFound, pushNotConfigured, unavailable } from '../../errors.ts'
import { pushJobSendsMax, pushJobsAtOnceMax, pushJobsWaitingMax, pushUsersPerReadMax } from '../../limits/push.ts'
import type { Delivery } from './delivery.ts'
import type { Device, Devices } from './devices.ts'
import type { Fcm } from './fcm.ts'
import type { Logs } from './logs.ts'
import type { Payload } from './message.ts'
import type { PushTables } from './migrations.ts'
import { failed, type Outcome } from './provider.ts'
import { type Kind, kindOf, type Platform } from './subscription.ts'
import type { DevicePosition, Topics } from './topics.ts'
import type { WebPush } from './web-push.ts'

/** The configured providers; null if not configured. */
export interface Providers {
  readonly fcm: Fcm | null
  readonly web: WebPush | null
}

export interface Tally {
  readonly sent: number
  /** Includes removed devices. */
  readonly failed: number
}

/** All methods throw 503 without configured credentials and when too many messages are queued. */
export interface Sending {
  /** Throws 404 if the user has no device. */
  toUser(userId: string, payload: Payload): Promise<Tally>
  toUsers(userIds: readonly string[], payload: Payload): Promise<Tally>
  toToken(token: string, platform: Platform, payload: Payload): Promise<Tally>
  /** Resolves once FCM has accepted the message; web push subscriptions are sent to in the background. */
  toTopic(topic: string, payload: Payload): Promise<void>
  /** Resolves when all jobs have finished. */
  idle(): Promise<void>
  /** Messages since start, by result. */
  readonly counts: Readonly<Record<Outcome['status'], number>>
}

export interface SendingDeps {
  readonly tables: PushTables
  readonly devices: Devices
  readonly topics: Topics
  readonly logs: Logs
  readonly delivery: Delivery
  readonly providers: () => Providers
  /** Called after devices have been removed. */
  readonly onDevicesRemoved: () => void
  readonly log: Log
}

/** A device, or an unregistered token. */
type Target = Pick<Device, 'token' | 'kind' | 'platform' | 'userId'>

const nothing: Tally = Object.freeze({ sent: 0, failed: 0 })
const add = (one: Tally, other: Tally): Tally => ({ sent: one.sent + other.sent, failed: one.failed + other.failed })

export function createSending(deps: SendingDeps): Sending {
  const { tables, devices, topics, logs, delivery, log } = deps
  const jobs = createSemaphore({ running: pushJobsAtOnceMax, waiting: pushJobsWaitingMax })
  const background = new Set<Promise<unknown>>()
  const counts = { sent: 0, failed: 0, removed: 0 }

  function providers(): Providers {
    const found = deps.providers()
    if (!found.fcm && !found.web) throw pushNotConfigured()
    return found
  }

  async function deliverTo({ token, kind }: Target, payload: Payload, { fcm, web }: Providers): Promise<Outcome> {
    if (kind === 'web') return web ? delivery.deliver(() => web.send(token, payload)) : failed('VAPID_NOT_CONFIGURED')
    return fcm ? delivery.deliver(() => fcm.send({ token }, payload)) : failed('FCM_NOT_CONFIGURED')
  }

  /** Sends to all targets with bounded concurrency, then records the results in one transaction. */
  async function sendAll(targets: readonly Target[], payload: Payload): Promise<Tally> {
    const ways = providers()
    const outcomes = new Array<Outcome | undefined>(targets.length)
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < targets.length) {
        const at = next++
        outcomes[at] = await deliverTo(targets[at] as Target, payload, ways)
      }
    }
    const workers = Array.from({ length: Math.min(pushJobSendsMax, targets.length) }, worker)
    // Results of sent messages are recorded even if others failed.
    const ended = await Promise.allSettled(workers)
    const finished = targets.flatMap((target, at) => {
      const outcome = outcomes[at]
      return outcome ? [{ target, outcome }] : []
    })
    await record(finished, payload)
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    const sentCount = finished.filter(({ outcome }) => outcome.status === 'sent').length
    return { sent: sentCount, failed: finished.length - sentCount }
  }

  async function record(finished: readonly { target: Target; outcome: Outcome }[], payload: Payload): Promise<void> {
    if (finished.length === 0) return
    await tables.database.write(async (tx) => {
      for (const { target, outcome } of finished) {
        logs.add(tx, target, payload, outcome)
        if (outcome.status === 'removed') devices.forgetToken(tx, target.token)
      }
    })
    for (const { outcome } of finished) counts[outcome.status] += 1
    if (finished.some(({ outcome }) => outcome.status === 'removed')) deps.onDevicesRemoved()
  }

  /** Runs a job for many recipients. Throws 503 if too many are queued. */
  function asJob<T>(work: () => Promise<T>): Promise<T> {
    const entered = jobs.run(work)
    if (!entered) throw unavailable()
    return entered
  }

  async function sendToBrowsers(topic: string, payload: Payload): Promise<void> {
    for (let after: DevicePosition | null = null; ; ) {
      const page: readonly Device[] = await topics.browsersOf(topic, after)
      if (page.length === 0) return
      await sendAll(page, payload)
      after = page.at(-1) ?? null
    }
  }

  /** A background job, which only shutdown waits for. Throws 503 if too many are queued. */
  function startJob(topic: string, work: () => Promise<unknown>): void {
    const job = asJob(work)
      .catch((error) => log.error('push.topic_send_failed', { topic, error }))
      .finally(() => background.delete(job))
    background.add(job)
  }

  async function publish(fcm: Fcm, topic: string, payload: Payload): Promise<void> {
    const outcome = await delivery.deliver(() => fcm.send({ topic }, payload))
    counts[outcome.status] += 1
    if (outcome.status === 'sent') return
    log.warn('push.topic_message_rejected', { topic, error: outcome.error })
    if (outcome.error?.startsWith('INVALID_ARGUMENT')) throw badRequest('FCM rejected the message')
    throw unavailable()
  }

  return {
    async toUser(userId, payload) {
      providers()
      const targets = await devices.ofUsers([userId])
      if (targets.length === 0) throw notFound('Device')
      return sendAll(targets, payload)
    },

    async toUsers(userIds, payload) {
      providers()
      const users = [...new Set(userIds)]
      return asJob(async () => {
        let tally = nothing
        for (let from = 0; from < users.length; from += pushUsersPerReadMax) {
          const targets = await devices.ofUsers(users.slice(from, from + pushUsersPerReadMax))
          tally = add(tally, await sendAll(targets, payload))
        }
        return tally
      })
    },

    async toToken(token, platform, payload) {
      const ways = providers()
      const kind: Kind = kindOf(token, platform)
      if (kind === 'web' ? !ways.web : !ways.fcm) throw pushNotConfigured()
      const known = await devices.findByToken(token)
      return sendAll([known ?? { token, kind, platform, userId: '' }], payload)
    },

    async toTopic(topic, payload) {
      const { fcm, web } = providers()
      const accepted = Promise.withResolvers<boolean>()
      // The job is queued before the call to FCM: what FCM has accepted cannot be rejected afterwards.
      if (web) startJob(topic, async () => (await accepted.promise) && sendToBrowsers(topic, payload))
      try {
        if (fcm) await publish(fcm, topic, payload)
        accepted.resolve(true)
      } catch (error) {
        accepted.resolve(false)
        throw error
      }
    },

    idle: async () => void (await Promise.all(background)),
    counts,
  }
}
