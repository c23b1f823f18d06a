/**
 * Sends messages: resolves recipients, sends in batches, logs results and removes unregistered devices. `delivery`
 * makes attempts and retries. Jobs for many recipients are bounded, and are lost in a crash.
 */
import { createSemaphore } from '../../base/concurrency/semaphore.ts'
import type { Log } from '../../base/log.ts'
import { badRequest, notFound, pushNotConfigured, unavailable } from '../../errors.ts'
import { pushJobSendsMax, pushJobsAtOnceMax, pushJobsWaitingMax, pushUsersPerReadMax } from '../../limits/push.ts'
import type { Delivery } from './delivery.ts'
import type { Device, Devices } from './devices/devices.ts'
import { type Kind, kindOf, type Platform } from './devices/subscription.ts'
import type { Logs } from './logs.ts'
import type { Payload } from './message.ts'
import type { PushTables } from './migrations.ts'
import type { Fcm } from './providers/fcm.ts'
import { failed, type Outcome } from './providers/provider.ts'
import type { Providers } from './providers/providers.ts'
import type { DevicePosition, Topics } from './topics/topics.ts'

export interface Tally {
  readonly sent: number
  /** Includes removed devices. */
  readonly failed: number
}

export interface SendingDeps {
  readonly tables: PushTables
  readonly devices: Devices
  readonly topics: Topics
  readonly logs: Logs
  readonly delivery: Delivery
  readonly providers: () => Providers
  /** Called after devices have been removed. */
  readonly onDevicesChanged: () => void
  readonly log: Log
}

/** A device, or an unregistered token. */
type Target = Pick<Device, 'token' | 'kind' | 'platform' | 'userId'>

const nothing: Tally = Object.freeze({ sent: 0, failed: 0 })
const add = (one: Tally, other: Tally): Tally => ({ sent: one.sent + other.sent, failed: one.failed + other.failed })

/** All methods that send throw 503 without configured credentials and when too many messages are queued. */
export class Sending {
  readonly #deps: SendingDeps
  readonly #counts = { sent: 0, failed: 0, removed: 0 }
  readonly #jobs = createSemaphore({ running: pushJobsAtOnceMax, waiting: pushJobsWaitingMax })
  readonly #background = new Set<Promise<unknown>>()

  constructor(deps: SendingDeps) {
    this.#deps = deps
  }

  /** Messages since start, by result. */
  get counts(): Readonly<Record<Outcome['status'], number>> {
    return this.#counts
  }

  /** Throws 404 if the user has no device. */
  async toUser(userId: string, payload: Payload): Promise<Tally> {
    this.#requireProviders()
    const targets = await this.#deps.devices.ofUsers([userId])
    if (targets.length === 0) throw notFound('Device')
    return this.#sendAll(targets, payload)
  }

  async toUsers(userIds: readonly string[], payload: Payload): Promise<Tally> {
    this.#requireProviders()
    const users = [...new Set(userIds)]
    return this.#runJob(async () => {
      let tally = nothing
      for (let from = 0; from < users.length; from += pushUsersPerReadMax) {
        const targets = await this.#deps.devices.ofUsers(users.slice(from, from + pushUsersPerReadMax))
        tally = add(tally, await this.#sendAll(targets, payload))
      }
      return tally
    })
  }

  async toToken(token: string, platform: Platform, payload: Payload): Promise<Tally> {
    const { fcm, web } = this.#requireProviders()
    const kind: Kind = kindOf(token, platform)
    if (kind === 'web' ? !web : !fcm) throw pushNotConfigured()
    const known = await this.#deps.devices.findByToken(token)
    return this.#sendAll([known ?? { token, kind, platform, userId: '' }], payload)
  }

  /** Resolves once FCM has accepted the message; web push subscriptions are sent to in the background. */
  async toTopic(topic: string, payload: Payload): Promise<void> {
    const { fcm, web } = this.#requireProviders()
    const accepted = Promise.withResolvers<boolean>()
    // The job is queued before the call to FCM: what FCM has accepted cannot be rejected afterwards.
    if (web)
      this.#startJob(topic, async () => {
        if (await accepted.promise) await this.#sendToBrowsers(topic, payload)
      })
    try {
      if (fcm) await this.#publish(fcm, topic, payload)
      accepted.resolve(true)
    } catch (error) {
      accepted.resolve(false)
      throw error
    }
  }

  /** Resolves when all background jobs have finished. */
  async idle(): Promise<void> {
    await Promise.all(this.#background)
  }

  #requireProviders(): Providers {
    const found = this.#deps.providers()
    if (!found.fcm && !found.web) throw pushNotConfigured()
    return found
  }

  /** Sends to all targets with bounded concurrency, then records the results in one transaction. */
  async #sendAll(targets: readonly Target[], payload: Payload): Promise<Tally> {
    const providers = this.#requireProviders()
    const outcomes = new Array<Outcome | undefined>(targets.length)
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < targets.length) {
        const at = next++
        outcomes[at] = await this.#deliverTo(targets[at] as Target, payload, providers)
      }
    }
    const workers = Array.from({ length: Math.min(pushJobSendsMax, targets.length) }, worker)
    // Results of sent messages are recorded even if others failed.
    const ended = await Promise.allSettled(workers)
    const finished = targets.flatMap((target, at) => {
      const outcome = outcomes[at]
      return outcome ? [{ target, outcome }] : []
    })
    await this.#record(finished, payload)
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    const sentCount = finished.filter(({ outcome }) => outcome.status === 'sent').length
    return { sent: sentCount, failed: finished.length - sentCount }
  }

  async #deliverTo({ token, kind }: Target, payload: Payload, { fcm, web }: Providers): Promise<Outcome> {
    const { delivery } = this.#deps
    if (kind === 'web') return web ? delivery.deliver(() => web.send(token, payload)) : failed('VAPID_NOT_CONFIGURED')
    return fcm ? delivery.deliver(() => fcm.send({ token }, payload)) : failed('FCM_NOT_CONFIGURED')
  }

  async #record(finished: readonly { target: Target; outcome: Outcome }[], payload: Payload): Promise<void> {
    if (finished.length === 0) return
    const { tables, devices, logs, onDevicesChanged } = this.#deps
    await tables.database.write(async (tx) => {
      for (const { target, outcome } of finished) {
        logs.add(tx, target, payload, outcome)
        if (outcome.status === 'removed') devices.forgetToken(tx, target.token)
      }
    })
    for (const { outcome } of finished) this.#counts[outcome.status] += 1
    if (finished.some(({ outcome }) => outcome.status === 'removed')) onDevicesChanged()
  }

  async #sendToBrowsers(topic: string, payload: Payload): Promise<void> {
    for (let after: DevicePosition | null = null; ; ) {
      const page: readonly Device[] = await this.#deps.topics.browsersOf(topic, after)
      if (page.length === 0) return
      await this.#sendAll(page, payload)
      after = page.at(-1) ?? null
    }
  }

  async #publish(fcm: Fcm, topic: string, payload: Payload): Promise<void> {
    const outcome = await this.#deps.delivery.deliver(() => fcm.send({ topic }, payload))
    this.#counts[outcome.status] += 1
    if (outcome.status === 'sent') return
    this.#deps.log.warn('push.topic_message_rejected', { topic, error: outcome.error })
    if (outcome.error?.startsWith('INVALID_ARGUMENT')) throw badRequest('FCM rejected the message')
    throw unavailable()
  }

  /** Runs a job for many recipients. Throws 503 if too many are queued. */
  #runJob<T>(work: () => Promise<T>): Promise<T> {
    const entered = this.#jobs.run(work)
    if (!entered) throw unavailable()
    return entered
  }

  /** A background job, which only shutdown waits for. Throws 503 if too many are queued. */
  #startJob(topic: string, work: () => Promise<void>): void {
    const job = this.#runJob(work)
      .catch((error) => this.#deps.log.error('push.topic_send_failed', { topic, error }))
      .finally(() => this.#background.delete(job))
    this.#background.add(job)
  }
}
