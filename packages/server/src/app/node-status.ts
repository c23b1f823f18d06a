/** What this node says of itself to administrators, on this node and on others. */
import { hostname } from 'node:os'
import type { Clock } from '../base/clock.ts'
import { formatDatetime } from '../base/text/datetime.ts'
import { type NodeDirectory, openNodeDirectory } from '../engines/cluster/node-directory.ts'
import type { RoomsFeature } from '../features/rooms/index.ts'
import type { Subscriptions } from '../features/subscriptions/index.ts'
import type { LogAnswer, LogQuestion } from '../features/system/node-logs.ts'
import type { NodeStatus } from '../features/system/nodes.ts'
import type { Sockets } from '../http/sockets/sockets.ts'
import { version } from '../version.ts'
import type { AppContext } from './context.ts'
import type { Engines } from './engines.ts'
import { openNodeLogs } from './node-logs.ts'

interface NodeStatusDeps {
  /** Identifies this process. */
  readonly id: string
  readonly sockets: Sockets
  readonly subscriptions: Subscriptions
  readonly rooms: RoomsFeature
  /** The names of the leases of jobs that this node holds. */
  readonly ownLeases: () => readonly string[]
  readonly clock: Clock
}

/** Shorter intervals would not say anything about the load. */
const cpuIntervalMsMin = 1000

/** The share of one processor that this process has used since the call before, or since it was created. */
function createCpuShare(): () => number {
  let [used, atMs] = [process.cpuUsage(), performance.now()]
  let share = 0
  return () => {
    const nowMs = performance.now()
    if (nowMs - atMs < cpuIntervalMsMin) return share
    const { user, system } = process.cpuUsage(used)
    share = Math.round((user + system) / (nowMs - atMs)) / 1000
    used = process.cpuUsage()
    atMs = nowMs
    return share
  }
}

function createNodeStatus(deps: NodeStatusDeps): () => Promise<NodeStatus> {
  const { id, sockets, clock } = deps
  const startedAt = formatDatetime(clock.now())
  const cpuShare = createCpuShare()
  return async () => {
    const rooms = deps.rooms.describe()
    const subscriptions = await deps.subscriptions.describe()
    return {
      id,
      host: hostname(),
      pid: process.pid,
      version,
      startedAt,
      at: formatDatetime(clock.now()),
      load: { cpu: cpuShare(), memoryBytes: process.memoryUsage.rss() },
      sockets: {
        open: sockets.size,
        pending: sockets.pendingSize,
        subscriptions: sockets.count('subscriptions'),
        rooms: sockets.count('rooms'),
      },
      subscriptions: { ...subscriptions, channels: [...subscriptions.channels] },
      rooms,
      leases: [...(rooms.session === null ? [] : [`rooms-node:${rooms.session}`]), ...deps.ownLeases()],
    }
  }
}

/** The nodes of the server, by what administrators read of all of them. */
export interface Nodes {
  readonly status: NodeDirectory<null, NodeStatus>
  readonly logs: NodeDirectory<LogQuestion, LogAnswer>
  close(): void
}

/** Lets this node answer others, and query them. Must be closed. */
export function openNodes(
  {
    context,
    engines,
    ownLeases,
  }: { readonly context: AppContext; readonly engines: Engines } & Pick<NodeStatusDeps, 'ownLeases'>,
  parts: Pick<NodeStatusDeps, 'sockets' | 'subscriptions' | 'rooms'>,
): Nodes {
  const { settings, clock, log } = context
  const own = crypto.randomUUID()
  const status = openNodeDirectory({
    channel: 'nodes',
    bus: settings.redisUrl === null ? null : engines.cluster,
    own,
    answer: createNodeStatus({ id: own, ownLeases, clock, ...parts }),
    log,
  })
  const logs = openNodeLogs(context, engines)
  return {
    status,
    logs,
    close() {
      status.close()
      logs.close()
    },
  }
}
