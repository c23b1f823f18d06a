/**
 * A peer of the rooms bench: the room of `arena/` on Socket.IO, which has rooms of sockets but no state. The
 * state is a map, whose changes are sent 20 times a second. Nothing is saved. Prints the port when it listens.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from 'socket.io'
import { deltaIntervalMs, playersMax } from '../arena.ts'

interface Position {
  x: number
  y: number
}

interface Arena {
  readonly positions: Map<string, Position>
  changed: Record<string, Position>
  isChanged: boolean
}

const listener = createServer()
const server = new Server(listener, { transports: ['websocket'] })
const arenas = new Map<string, Arena>()

server.on('connection', (socket) => {
  const name = String(socket.handshake.query.arena)
  const arena: Arena = arenas.get(name) ?? { positions: new Map(), changed: {}, isChanged: false }
  if (arena.positions.size >= playersMax) {
    socket.disconnect(true)
    return
  }
  arenas.set(name, arena)
  arena.positions.set(socket.id, { x: 0, y: 0 })
  void socket.join(name)
  socket.emit('state', Object.fromEntries(arena.positions))
  socket.on('move', ({ x, y }: Position, answer: (result: number) => void) => {
    const position = arena.positions.get(socket.id)
    if (!position) throw new Error('This player is not in the room')
    position.x = x
    position.y = y
    arena.changed[socket.id] = position
    arena.isChanged = true
    answer(x)
  })
  socket.on('disconnect', () => {
    arena.positions.delete(socket.id)
    if (arena.positions.size === 0) arenas.delete(name)
  })
})

setInterval(() => {
  for (const [name, arena] of arenas) {
    if (!arena.isChanged) continue
    server.to(name).emit('delta', arena.changed)
    arena.changed = {}
    arena.isChanged = false
  }
}, deltaIntervalMs)

listener.listen(0, '127.0.0.1', () => console.log((listener.address() as AddressInfo).port))
