/**
 * The baseline of the rooms bench: the arena on bare WebSockets of the runtime, with the messages of Plinth's protocol
 * but without tokens, rules, rollback, resending or saving. Prints the port when it listens.
 */
import { deltaIntervalMs } from './arena.ts'

interface Position {
  x: number
  y: number
}

interface Arena {
  readonly positions: Record<string, Position>
  readonly changed: Map<string, Position>
  version: number
}

interface Player {
  readonly id: string
  readonly room: string
}

const arenas = new Map<string, Arena>()

function arenaOf(room: string): Arena {
  let arena = arenas.get(room)
  if (!arena) {
    arena = { positions: {}, changed: new Map(), version: 0 }
    arenas.set(room, arena)
  }
  return arena
}

const server = Bun.serve<Player>({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request, server) {
    const room = new URL(request.url).searchParams.get('id') ?? ''
    if (!server.upgrade(request, { data: { id: crypto.randomUUID(), room } }))
      return new Response(null, { status: 426 })
  },
  websocket: {
    perMessageDeflate: false,
    message(socket, text) {
      const { id, room } = socket.data
      const { type, payload, requestId, actionType } = JSON.parse(String(text))
      const arena = arenaOf(room)
      if (type === 'auth') socket.sendText(JSON.stringify({ type: 'auth_success', userId: id }))
      else if (type === 'join') {
        arena.positions[id] = { x: 0, y: 0 }
        socket.sendText(
          JSON.stringify({ type: 'sync', sharedState: { positions: arena.positions }, sharedVersion: arena.version }),
        )
        socket.subscribe(room)
      } else {
        const position = arena.positions[id] as Position
        position.x = payload.x
        position.y = payload.y
        arena.changed.set(id, position)
        socket.sendText(JSON.stringify({ type: 'action_result', requestId, result: payload.x, actionType }))
      }
    },
    close({ data: { id, room } }) {
      delete arenas.get(room)?.positions[id]
      arenas.get(room)?.changed.delete(id)
    },
  },
})

setInterval(() => {
  for (const [room, arena] of arenas) {
    if (arena.changed.size === 0) continue
    const delta: Record<string, number> = {}
    for (const [id, { x, y }] of arena.changed) {
      delta[`positions.${id}.x`] = x
      delta[`positions.${id}.y`] = y
    }
    arena.changed.clear()
    arena.version += 1
    server.publish(room, JSON.stringify({ type: 'shared_delta', delta, version: arena.version }))
  }
}, deltaIntervalMs)

console.log(server.port)
