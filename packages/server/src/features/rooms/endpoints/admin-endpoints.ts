/** Endpoints for administrators: list and inspect rooms in memory, kick players, hibernate rooms. */
import { z } from '../../../base/schemas/z.ts'
import { conflict, notFound, unavailable } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { cursorParam, integerParam, limitParam } from '../../../http/input/query-schema.ts'
import { fitItems } from '../../../http/replies/large-responses.ts'
import { createListCursors } from '../../../http/replies/list-cursor.ts'
import { json, jsonText } from '../../../http/replies/reply.ts'
import {
  roomListLimit,
  roomListLimitMax,
  roomNameCharsMax,
  roomPreviewBytesMin,
  roomStateBytesMax,
} from '../../../limits/rooms.ts'
import type { RoomView } from '../engine/ports.ts'
import { listNameOf } from './room-page.ts'
import {
  actScope,
  metadataSchema,
  namespaceSchema,
  occupancySchema,
  readScope,
  roomSchema,
  tag,
  writeScope,
} from './schemas.ts'
import type { Summaries } from './summaries.ts'

export interface AdminEndpointsDeps {
  readonly summaries: Summaries
  /** Limit of the bytes of all items in a response. */
  readonly itemsBytesMax: () => number
  /** Seals cursors. */
  readonly secret: string
}

const listSchema = z.object({
  namespace: namespaceSchema.optional().meta({ description: 'Only rooms of this namespace' }),
  limit: limitParam({ default: roomListLimit, max: roomListLimitMax }),
  cursor: cursorParam(),
})
const inspectSchema = roomSchema.extend({
  cursor: cursorParam('`cursor` of the previous page of players'),
  preview: integerParam({
    min: roomPreviewBytesMin,
    max: roomStateBytesMax,
    description: 'States of more bytes are cut to about this size, and are listed in `previews`',
  }),
})
const playerSchema = roomSchema.extend({ userId: z.string().min(1).max(roomNameCharsMax) })

const actionSchema = playerSchema.extend({
  actionType: z.string().min(1).max(roomNameCharsMax),
  payload: z.unknown().default({}),
})
const answerSchema = z.union([
  z.object({ ok: z.literal(true), result: z.unknown() }),
  z.object({ ok: z.literal(false), error: z.object({ code: z.string(), message: z.string() }) }),
])

const truncated = z.literal(true).optional()
const loadSchema = z
  .object({
    messagesPerSecond: z.number().meta({ description: 'Actions, signals and presence received' }),
    tickMs: z.number().meta({ description: 'Mean duration of the ticks with something to send' }),
    stateBytes: z.int().meta({ description: 'Of all its states together' }),
  })
  .meta({ description: 'Over the last 10 seconds' })
const okSchema = z.object({ ok: z.literal(true) })
const roomListSchema = z.object({
  rooms: z.array(
    z.object({
      namespace: z.string(),
      roomId: z.string(),
      occupancy: occupancySchema,
      load: loadSchema,
      node: z.string().nullable().meta({ description: 'The session of the node that runs it; null in one process' }),
    }),
  ),
  cursor: z.string().nullable(),
  truncated,
})
const viewSchema = z.object({
  namespace: z.string(),
  roomId: z.string(),
  epoch: z.string(),
  sharedVersion: z.number(),
  shared: metadataSchema,
  server: metadataSchema,
  metadata: metadataSchema,
  occupancy: occupancySchema,
  players: z.array(
    z.object({ userId: z.string(), connections: z.number(), state: metadataSchema, version: z.number() }),
  ),
  actions: z.array(
    z.object({
      at: z.string(),
      userId: z.string(),
      actionType: z.string(),
      payload: z.string().nullable().meta({
        description: 'As JSON, with secrets hidden, cut to 512 characters; null if absent or above 4 KiB',
      }),
      durationMs: z.number(),
      error: z.string().nullable(),
      sentBy: z.string().nullable().meta({ description: 'The service key or administrator that acted as the user' }),
    }),
  ),
  load: loadSchema,
  previews: z
    .array(z.string())
    .meta({ description: 'States that were cut: `shared`, `server`, `metadata`, `player:ID`' }),
  truncated,
  cursor: z.string().nullable(),
})

const common = { tag, credentials: 'service', rateLimit: 'global' } as const

export const createAdminEndpoints = (deps: AdminEndpointsDeps): readonly Endpoint[] => [
  listEndpoint(deps),
  inspectEndpoint(deps),
  ...commandEndpoints(deps),
  actEndpoint(deps),
]

function listEndpoint({ summaries, itemsBytesMax, secret }: AdminEndpointsDeps): Endpoint {
  const cursors = createListCursors<[name: string]>(secret, 'rooms list')
  return endpoint({
    ...common,
    name: 'rooms.list',
    method: 'GET',
    paths: ['/api/room/admin/rooms'],
    summary: 'List the rooms in memory on all nodes',
    scope: readScope,
    query: listSchema,
    replies: {
      200: { description: 'Ordered by namespace and id; `cursor` is null on the last page', schema: roomListSchema },
    },
    async handle({ query }) {
      const { namespace = null, limit } = query
      const list = [namespace]
      const [after] = query.cursor === undefined ? [null] : cursors.parse(list, query.cursor)
      const { rooms: found, hasMore } = await summaries.list({ namespace, limit, after })
      const listed = found.map(({ key, ...room }) => ({ namespace: key.namespace, roomId: key.id, ...room }))
      const { items: rooms, isCut } = await fitItems(listed, itemsBytesMax())
      const last = isCut || hasMore ? found[rooms.length - 1] : undefined
      const cursor = last ? cursors.format(list, [listNameOf(last.key)]) : null
      return json({ rooms, cursor, ...(isCut ? { truncated: true } : {}) })
    },
  })
}

function inspectEndpoint({ summaries, itemsBytesMax, secret }: AdminEndpointsDeps): Endpoint {
  const cursors = createListCursors<[userId: string]>(secret, 'rooms players')
  return endpoint({
    ...common,
    name: 'rooms.inspect',
    method: 'GET',
    paths: ['/api/room/admin/room'],
    summary: 'Inspect a room in memory: complete state, players and latest actions',
    description: 'Players are ordered by id. Players that do not fit in the response follow with `cursor`.',
    scope: readScope,
    query: inspectSchema,
    replies: { 200: { description: 'The room', schema: viewSchema } },
    errors: [404],
    async handle({ query }) {
      const { cursor, preview = null, ...key } = query
      const list = [key.namespace, key.id]
      const [after] = cursor === undefined ? [null] : cursors.parse(list, cursor)
      const view = await summaries.inspect(key, {
        after,
        bytesMax: itemsBytesMax(),
        previewBytes: preview,
      })
      if (!view) throw notFound('Room')
      return jsonText(viewText(view, (userId) => cursors.format(list, [userId])))
    },
  })
}

const commandEndpoints = ({ summaries }: AdminEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'rooms.kick',
    method: 'POST',
    paths: ['/api/room/admin/kick'],
    summary: 'Remove a player from a room',
    scope: writeScope,
    body: playerSchema,
    replies: { 200: { description: 'The room has received the command', schema: okSchema } },
    errors: [404],
    async handle({ body: { userId, ...key } }) {
      if (!(await summaries.kick(key, userId))) throw notFound('Room')
      return json({ ok: true })
    },
  }),
  endpoint({
    ...common,
    name: 'rooms.hibernate',
    method: 'POST',
    paths: ['/api/room/admin/hibernate'],
    summary: 'Save a room and drop it from memory',
    description: 'A room with connected players is loaded again at once.',
    scope: writeScope,
    body: roomSchema,
    replies: { 200: { description: 'Saved', schema: okSchema } },
    errors: [404],
    async handle({ body }) {
      if (!(await summaries.hibernate(body))) throw notFound('Room')
      return json({ ok: true })
    },
  }),
]

const actEndpoint = ({ summaries }: AdminEndpointsDeps): Endpoint =>
  endpoint({
    ...common,
    name: 'rooms.act',
    method: 'POST',
    paths: ['/api/room/admin/act'],
    summary: 'Send an action in the name of a player',
    description:
      'The action passes the access rule of the player and the queue of the room, and its handler runs, as if the player had sent it. `error` is what the player would have received.',
    scope: actScope,
    body: actionSchema,
    replies: { 200: { description: 'The room has answered', schema: answerSchema } },
    errors: [404, 409, 503],
    async handle({ body: { namespace, id, ...action }, caller }) {
      const by = caller.kind === 'service' ? caller.keyName : ''
      const outcome = await summaries.act({ namespace, id }, { ...action, by })
      if (outcome === null) throw notFound('Room')
      switch (outcome.kind) {
        case 'done':
          return json({ ok: true, result: outcome.result })
        case 'failed':
          return json({ ok: false, error: { code: outcome.code, message: outcome.message } })
        case 'noPlayer':
          throw notFound('Player')
        case 'moved':
          throw conflict('The room is moving or busy, and the action has not run; send it again')
        case 'unknown':
          throw unavailable(1, 'The room did not answer in time; its latest actions show whether this one has run')
      }
    },
  })

/** The view as JSON; its states are JSON already. */
function viewText(
  { key, shared, server, metadata, players, actions, isTruncated, ...view }: RoomView,
  cursorAfter: (userId: string) => string,
): string {
  const last = players.at(-1)
  const head = {
    namespace: key.namespace,
    roomId: key.id,
    ...view,
    actions: actions.map(({ atMs, ...action }) => ({ at: new Date(atMs).toISOString(), ...action })),
    ...(isTruncated && last ? { truncated: true, cursor: cursorAfter(last.userId) } : { cursor: null }),
  }
  const playerTexts = players.map(({ state, ...player }) => `${JSON.stringify(player).slice(0, -1)},"state":${state}}`)
  const states = `"shared":${shared},"server":${server},"metadata":${metadata},"players":[${playerTexts.join(',')}]`
  return `${JSON.stringify(head).slice(0, -1)},${states}}`
}
