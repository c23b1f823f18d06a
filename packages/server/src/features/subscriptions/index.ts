/**
 * Live subscriptions (rules SUB-*): connects endpoints, sessions, delivery and broadcasts. `app` passes in the change
 * feed of `features/records`.
 */

import type { Log } from '../../base/log.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import { createSessionSet } from '../../http/sockets/session-set.ts'
import type { Sockets } from '../../http/sockets/sockets.ts'
import type { Feature } from '../feature.ts'
import { type BroadcastChannels, createBroadcasts } from './broadcasts/broadcast.ts'
import { createBroadcastEndpoint } from './broadcasts/broadcast-endpoint.ts'
import type { Feed, Resolve } from './change-feed.ts'
import { createChannelAccess } from './channel-access.ts'
import type { FindNamespace, Namespace } from './channels.ts'
import { createCursorCodec } from './delivery/cursor-codec.ts'
import { Delivery } from './delivery/delivery.ts'
import { createBudget } from './sockets/budget.ts'
import { ConnectEndpoints } from './sockets/connect-endpoints.ts'
import { SubscriptionSession } from './sockets/session.ts'
import { describeSubscriptions, type SubscriptionsStatus } from './status.ts'

export interface SubscriptionsDeps {
  readonly feed: Feed
  readonly resolve: Resolve
  readonly namespaces: () => ReadonlyMap<string, Namespace>
  /** Declared broadcast channels. */
  readonly broadcasts: () => BroadcastChannels
  readonly cluster: Pick<Cluster, 'publish' | 'subscribe' | 'isHealthy'>
  readonly sockets: Pick<Sockets, 'pending'>
  /** Sends a text to every socket that listens to a topic. */
  readonly publish: (topic: string, text: string) => void
  /** Seals cursors. */
  readonly secret: string
  readonly log: Log
}

export interface Subscriptions extends Feature {
  describe(): Promise<SubscriptionsStatus>
}

export function createSubscriptions(deps: SubscriptionsDeps): Subscriptions {
  const { feed, resolve, namespaces, cluster, sockets, publish, secret, log } = deps
  const findNamespace: FindNamespace = (name) => namespaces().get(name)
  const delivery = new Delivery({ feed, cursors: createCursorCodec(secret), publish, log })
  const access = createChannelAccess({ resolve, findNamespace, broadcasts: deps.broadcasts, log })
  const budget = createBudget()
  const broadcasts = createBroadcasts(cluster, publish)
  const sessions = createSessionSet<SubscriptionSession>()
  const connect = new ConnectEndpoints({
    findNamespace,
    broadcasts: deps.broadcasts,
    sockets,
    openSession: (connection, request) =>
      sessions.add(new SubscriptionSession(connection, request, { access, delivery, broadcasts, budget, log })),
  })

  return {
    name: 'subscriptions',
    describe: () => describeSubscriptions(sessions, delivery),
    endpoints: [connect.check, createBroadcastEndpoint({ broadcasts, declared: deps.broadcasts, findNamespace })],
    socketEndpoints: [connect.socket],
    metrics(metrics) {
      metrics.gauge('subscription_views', 'Distinct subscriptions.', () => delivery.sharedQueries)
      metrics.gauge('subscriptions_held', 'Subscriptions paused until their client has read.', () => delivery.paused)
    },
    /** Evaluates the access of every subscription again. */
    async reconfigured() {
      await Promise.all([...sessions].map((session) => session.reset()))
    },
  }
}
