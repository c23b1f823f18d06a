/** Subscribes the devices of a user to topics: validates the topic, changes the rows and syncs FCM at once. */
import { notFound, pushNotConfigured } from '../../../errors.ts'
import type { Device, Devices } from '../devices/devices.ts'
import type { Providers } from '../providers/providers.ts'
import type { TopicSync } from './topic-sync.ts'
import { parseTopic, type Topics } from './topics.ts'

export interface TopicMembershipDeps {
  readonly devices: Devices
  readonly topics: Topics
  readonly topicSync: TopicSync
  readonly providers: () => Providers
}

export interface MembershipChange {
  /** Devices that have the requested state. */
  readonly changed: number
  /** Devices that will get it later. */
  readonly failed: number
}

/**
 * Subscribes or unsubscribes every device of a user. Throws 404 if there are none, 503 if no provider is configured,
 * and 400 for an invalid topic or beyond the limit of topics per device.
 */
export type ChangeMembership = (userId: string, topic: string, isWanted: boolean) => Promise<MembershipChange>

export function createTopicMembership(deps: TopicMembershipDeps): ChangeMembership {
  const { devices, topics, topicSync, providers } = deps
  return async (userId, text, isWanted) => {
    const topic = parseTopic(text)
    const { fcm, web } = providers()
    if (!fcm && !web) {
      if ((await devices.list(userId)).length === 0) throw notFound('Device')
      throw pushNotConfigured()
    }
    const { devices: all, leasedTokens } = await topics.change(userId, topic, isWanted)
    const unsynced = leasedTokens.length === 0 ? new Set<string>() : await topicSync.syncTopic(topic, leasedTokens)
    const isFailed = ({ kind, token }: Device): boolean => (kind === 'web' ? !web : !fcm || unsynced.has(token))
    const failed = all.filter(isFailed).length
    return { changed: all.length - failed, failed }
  }
}
