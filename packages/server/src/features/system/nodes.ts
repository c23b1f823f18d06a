/** The endpoint of the nodes of the server, and what each of them serves. */
import { z } from '../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { json } from '../../http/replies/reply.ts'
import { nodeAnswerMs, nodeChannelsMax } from '../../limits/redis.ts'

const count = z.int()
const channelSchema = z.object({ channel: z.string(), subscribers: count })

const nodeSchema = z.object({
  id: z.string().meta({ description: 'Of this run of its process' }),
  host: z.string(),
  pid: count,
  version: z.string(),
  startedAt: z.iso.datetime(),
  at: z.iso.datetime().meta({ description: 'The time by the clock of the node' }),
  load: z.object({
    cpu: z.number().meta({ description: 'Share of one processor, over the seconds since the last query' }),
    memoryBytes: count.meta({ description: 'Resident memory, without processes of functions' }),
  }),
  sockets: z.object({ open: count, pending: count, subscriptions: count, rooms: count }),
  subscriptions: z.object({ subscriptions: count, queries: count, paused: count, channels: z.array(channelSchema) }),
  rooms: z.object({ rooms: count, players: count, connections: count, session: z.string().nullable() }),
  leases: z.array(z.string()).meta({ description: 'Names of the leases that it holds' }),
})

const nodesSchema = z.object({
  items: z.array(nodeSchema),
  channels: z.array(channelSchema),
  truncated: z.literal(true).optional(),
})

export type NodeStatus = z.output<typeof nodeSchema>
type Channel = z.output<typeof channelSchema>

export interface NodesParts {
  /** What this node and all others that answer say of themselves; this node comes first. */
  readonly queryNodes: () => Promise<readonly NodeStatus[]>
  /** Largest JSON response, in bytes. */
  readonly responseBytes: () => number
}

/** The channels with the most subscribers of all nodes together. */
function sumChannels(nodes: readonly NodeStatus[]): Channel[] {
  const sums = new Map<string, number>()
  for (const { subscriptions } of nodes)
    for (const { channel, subscribers } of subscriptions.channels)
      sums.set(channel, (sums.get(channel) ?? 0) + subscribers)
  return [...sums]
    .map(([channel, subscribers]) => ({ channel, subscribers }))
    .sort((one, other) => other.subscribers - one.subscribers || (one.channel < other.channel ? -1 : 1))
    .slice(0, nodeChannelsMax)
}

export const createNodesEndpoint = ({ queryNodes, responseBytes }: NodesParts): Endpoint =>
  endpoint({
    name: 'system.nodes',
    method: 'GET',
    paths: ['/api/nodes'],
    tag: 'System',
    summary: 'List the nodes of the server with their sockets, subscriptions, rooms, leases and load',
    description: `Nodes that do not answer within ${nodeAnswerMs} ms are missing. \`channels\` sums up the ${nodeChannelsMax} channels with the most subscribers of each node.`,
    credentials: 'service',
    scope: () => 'system:nodes:*:read',
    rateLimit: 'global',
    replies: { 200: { description: 'The node that answers comes first', schema: nodesSchema } },
    async handle() {
      const nodes = await queryNodes()
      const bytesMax = itemBytesMax(responseBytes()) / 2
      const { items, isCut } = await fitItems(nodes, bytesMax)
      const { items: channels, isCut: isChannelsCut } = await fitItems(sumChannels(nodes), bytesMax)
      return json({ items, channels, ...(isCut || isChannelsCut ? { truncated: true } : {}) })
    },
  })
