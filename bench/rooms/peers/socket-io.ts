/**
 * A peer of the rooms bench: the room of `arena/` on Socket.IO, which knows rooms of sockets but no state. So
 * the state is a map here, and what has changed of it goes out 20 times a second. Nothing is saved. Prints the port
 * when it listens.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from 'socket.io'
import { deltaIntervalMs, playersMax } from '../arena.ts'

interface Place {
  x: number
  y: number
}

interface Arena {
  readonly places: Map<string, Place>
  changed: Record<string, Place>
  isChanged: boolean
}

const listener = createServer()
const server = new Server(listener, { transports: ['websocket'] })
const arenas = new Map<string, Arena>()

server.on('connection', (socket) => {
  const name = String(socket.handshake.query.arena)
  const arena: Arena = arenas.get(name) ?? { places: new Map(), changed: {}, isChanged: false }
  if (arena.places.size >= playersMax) {
    socket.disconnect(true)
    return
  }
  arenas.set(name, arena)
  arena.places.set(socket.id, { x: 0, y: 0 })
  void socket.join(name)
  socket.emit('state', Object.fromEntries(arena.places))
  socket.on('move', ({ x, y }: Place, answer: (result: number) => void) => {
    const place = arena.places.get(socket.id)
    if (!place) throw new Error('Nobody is here')
    place.x = x
    place.y = y
    arena.changed[socket.id] = place
    arena.isChanged = true
    answer(x)
  })
  socket.on('disconnect', () => {
    arena.places.delete(socket.id)
    if (arena.places.size === 0) arenas.delete(name)
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
