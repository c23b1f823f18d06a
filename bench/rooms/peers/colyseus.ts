/**
 * A peer of the rooms bench: the room of `arena/` on Colyseus, with its own serializer and at its usual patch
 * rate of 20 a second. Nothing is saved. Prints the port when it listens.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Room, Server } from '@colyseus/core'
import { schema, t } from '@colyseus/schema'
import { WebSocketTransport } from '@colyseus/ws-transport'
import { deltaIntervalMs, playersMax } from '../arena.ts'

const Position = schema({ x: t.number(), y: t.number() })
const Arena = schema({ positions: t.map(Position) })

class ArenaRoom extends Room<{ state: InstanceType<typeof Arena> }> {
  override state = new Arena()
  override maxClients = playersMax
  override patchRate = deltaIntervalMs

  override messages = {
    /** The returned value is the response. */
    move: ({ sessionId }: { sessionId: string }, [x, y]: [number, number]): number => {
      const position = this.state.positions.get(sessionId)
      if (!position) throw new Error('This player is not in the room')
      position.x = x
      position.y = y
      return x
    },
  }

  override onJoin({ sessionId }: { sessionId: string }): void {
    this.state.positions.set(sessionId, new Position({ x: 0, y: 0 }))
  }

  override onLeave({ sessionId }: { sessionId: string }): void {
    this.state.positions.delete(sessionId)
  }
}

const listener = createServer()
const server = new Server({ greet: false, transport: new WebSocketTransport({ server: listener }) })
server.define('arena', ArenaRoom).filterBy(['arena'])
await server.listen(0, '127.0.0.1')
console.log((listener.address() as AddressInfo).port)
