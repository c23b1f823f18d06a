/** Endpoints that show metadata and occupancy of rooms, subject to the rule `access.metadata`. */

import type { Clock } from '../../../base/clock.ts'
import { z } from '../../../base/schemas/z.ts'
import { jsonBytes } from '../../../base/text/json.ts'
import type { RoomNamespace } from '../../../config/sections/rooms/rooms.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { fitItems } from '../../../http/replies/large-responses.ts'
import { json } from '../../../http/replies/reply.ts'
import { roomSummariesAtOnce, roomSummariesMax } from '../../../limits/rooms.ts'
import type { RoomAccessCheck } from '../access.ts'
import type { RoomKey } from '../engine/ports.ts'
import {
  metadataSchema,
  namespaceSchema,
  occupancySchema,
  readScope,
  roomIdSchema,
  roomSchema,
  tag,
} from './schemas.ts'
import type { RoomSummary, Summaries } from './summaries.ts'

export interface SummaryEndpointsDeps {
  readonly findNamespace: (name: string) => RoomNamespace | null
  readonly access: RoomAccessCheck
  readonly summaries: Summaries
  /** Limit of the bytes of all items in a response. */
  readonly itemsBytesMax: () => number
  readonly clock: Clock
}

const roomsSchema = z.object({ namespace: namespaceSchema, ids: z.array(roomIdSchema).max(roomSummariesMax) })

const summarySchema = z.object({
  namespace: z.string(),
  roomId: z.string(),
  metadata: metadataSchema,
  occupancy: occupancySchema,
  updatedAt: z.string(),
})
const summariesSchema = z.object({
  namespace: z.string(),
  items: z.array(summarySchema),
  deniedIds: z.array(z.string()),
  updatedAt: z.string(),
  truncated: z.literal(true).optional().describe('Present if further rooms did not fit: request them separately'),
})

const visibility =
  'Visible where `access.metadata` or `public.metadata` of the namespace allows it. Without either, visible to all callers in development mode, and only to service keys in release mode.'

const common = { tag, credentials: 'rules', scope: readScope, rateLimit: 'global', errors: [404] } as const

/** A summary as responses contain it. */
const summaryOf = ({ namespace, id }: RoomKey, { metadata, occupancy }: RoomSummary, updatedAt: string) => ({
  namespace,
  roomId: id,
  metadata,
  occupancy,
  updatedAt,
})

class SummaryReader {
  constructor(private readonly deps: SummaryEndpointsDeps) {}

  now(): string {
    return new Date(this.deps.clock.now()).toISOString()
  }

  /** Throws 404 for a namespace that is not configured. */
  requireNamespace(name: string): RoomNamespace {
    const found = this.deps.findNamespace(name)
    if (!found) throw notFound('Room namespace')
    return found
  }

  async readOne({ namespace, id }: RoomKey): Promise<RoomSummary> {
    const [found] = await this.deps.summaries.find(namespace, [id])
    return found as RoomSummary
  }

  /** Summaries of the first rooms, as many as fit in `bytesMax`. */
  async readMany(namespace: string, ids: readonly string[], bytesMax: number) {
    const found: ReturnType<typeof summaryOf>[] = []
    let bytes = 0
    while (found.length < ids.length && bytes <= bytesMax) {
      const batch = ids.slice(found.length, found.length + roomSummariesAtOnce)
      const summaries = await this.deps.summaries.find(namespace, batch)
      const items = batch.map((id, at) => summaryOf({ namespace, id }, summaries[at] as RoomSummary, this.now()))
      bytes += jsonBytes(items)
      found.push(...items)
    }
    const { items, isCut } = await fitItems(found, bytesMax)
    return { items, isTruncated: isCut || items.length < ids.length }
  }
}

export function createSummaryEndpoints(deps: SummaryEndpointsDeps): readonly Endpoint[] {
  const { access, itemsBytesMax } = deps
  const reader = new SummaryReader(deps)
  return [
    endpoint({
      ...common,
      name: 'rooms.summary',
      method: 'GET',
      paths: ['/api/room/summary'],
      summary: 'Get metadata and occupancy of a room',
      description: visibility,
      query: roomSchema,
      replies: {
        200: { description: 'The current metadata and occupancy, also of an empty room', schema: summarySchema },
      },
      async handle({ query, caller }) {
        await access.requireMetadata(reader.requireNamespace(query.namespace), query.id, caller)
        return json(summaryOf(query, await reader.readOne(query), reader.now()))
      },
    }),
    endpoint({
      ...common,
      name: 'rooms.summaries',
      method: 'POST',
      changes: false,
      paths: ['/api/room/summaries'],
      summary: `Get metadata and occupancy of up to ${roomSummariesMax} rooms`,
      description: `${visibility} Rooms that are not visible to the caller are listed in \`deniedIds\`.`,
      body: roomsSchema,
      replies: { 200: { description: 'Summaries in the order of `ids`, without duplicates', schema: summariesSchema } },
      async handle({ body, caller }) {
        const namespace = reader.requireNamespace(body.namespace)
        const ids = [...new Set(body.ids)]
        const allowed = await Promise.all(ids.map((id) => access.maySeeMetadata(namespace, id, caller)))
        const deniedIds = ids.filter((_, at) => !allowed[at])
        const visible = ids.filter((_, at) => allowed[at])
        const bytesMax = Math.max(1, itemsBytesMax() - jsonBytes(deniedIds))
        const { items, isTruncated } = await reader.readMany(body.namespace, visible, bytesMax)
        const head = { namespace: body.namespace, items, deniedIds, updatedAt: reader.now() }
        return json(isTruncated ? { ...head, truncated: true } : head)
      },
    }),
    endpoint({
      ...common,
      name: 'rooms.metadata',
      method: 'GET',
      paths: ['/api/room/metadata'],
      summary: 'Get the metadata of a room',
      description: visibility,
      query: roomSchema,
      replies: { 200: { description: 'The metadata; empty if the room has set none', schema: metadataSchema } },
      async handle({ query, caller }) {
        await access.requireMetadata(reader.requireNamespace(query.namespace), query.id, caller)
        return json((await reader.readOne(query)).metadata)
      },
    }),
  ]
}
