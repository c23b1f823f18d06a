/**
 * Locates the rooms of this node's sockets (here, on another node, or unknown) and forwards commands to them in order.
 * Commands wait while the location is unknown. When a room has moved, all of its sockets join again without the
 * clients'
 * help: each receives a `sync`.
 */
import { closeCodes } from '../../http/sockets/socket-protocol.ts'
import {
  roomCommandsWaitingMax,
  roomFindRetriesMax,
  roomFindRetryMaxMs,
  roomFindRetryMinMs,
} from '../../limits/rooms.ts'
import { type RoomCommand, type RoomKey, roomName } from './engine/ports.ts'
import type { RoomSocket } from './local-members.ts'

export interface RoomLocator {
  /** Forwards a command of a socket to its room. False when too many commands wait for the room's location. */
  tell(socket: RoomSocket, command: RoomCommand): boolean
  /** The socket is gone. */
  leave(socket: RoomSocket): void
  /** The room is leaving this node, and `moved` follows; commands for it wait. */
  leaving(key: RoomKey): void
  /** The room has left `from`, which is `here` or a node; `waiting` are the commands it has not processed. */
  moved(key: RoomKey, from: string, waiting: readonly RoomCommand[]): void
  /** Messages to or from the node may be lost: the sockets of every room there join again. */
  lost(node: string): void
  /** The room has answered, which confirms its location. */
  heard(key: RoomKey): void
  /** Nodes that rooms are located on. */
  nodes(): ReadonlySet<string>
  stop(): void
}

export interface RoomLocatorDeps {
  /** Gives a command to the room on this node. */
  readonly receive: (key: RoomKey, command: RoomCommand) => void
  /** Gives a command to the room on another node. False when there is no way there. */
  readonly relay: (node: string, key: RoomKey, command: RoomCommand) => boolean
  /** The node that owned the room when this one last tried to claim it. */
  readonly takeOwner: (key: RoomKey) => string | null
  /** Stops delivery of what the room publishes until its sockets follow it again. */
  readonly dismiss: (key: RoomKey) => void
}

/** `here`, a node, `leaving` while a hand-over is under way, or null while the owner is being determined. */
type Place = 'here' | { readonly node: string } | 'leaving' | null

interface Route {
  readonly key: RoomKey
  readonly sockets: Map<string, RoomSocket>
  place: Place
  /** Commands received since the location was last known. */
  waiting: RoomCommand[]
  /** Attempts to locate the room since it last answered. */
  looks: number
  retry: ReturnType<typeof setTimeout> | null
}

/** A join of a socket that has joined before. */
function rejoin(socket: RoomSocket): RoomCommand[] {
  const { id, caller } = socket.connection
  // Its new room checks again whether it reads too slowly.
  socket.isSlow = false
  return caller.kind === 'user' ? [{ type: 'join', connectionId: id, auth: caller.auth, resume: null }] : []
}

/** Whether it is `here`, or on the node of that name. */
const isAt = (place: Place, where: string): boolean =>
  typeof place === 'object' ? place?.node === where : where === 'here' && place !== null

export function createRoomLocator({ receive, relay, takeOwner, dismiss }: RoomLocatorDeps): RoomLocator {
  const routes = new Map<string, Route>()
  let hasStopped = false

  function dispatch(route: Route, command: RoomCommand): void {
    const { key, place } = route
    if (place === 'here') receive(key, command)
    else if (place === null || place === 'leaving') route.waiting.push(command)
    else if (!relay(place.node, key, command)) look(route, [command])
  }

  function settle(route: Route, place: Place): void {
    route.retry = null
    route.place = place
    for (const command of route.waiting.splice(0)) dispatch(route, command)
  }

  /** Locates the room again, and has every socket join there before any other command is forwarded. */
  function look(route: Route, waiting: readonly RoomCommand[]): void {
    const { key, sockets } = route
    if (route.place === null) {
      route.waiting.push(...waiting)
      return
    }
    route.place = null
    dismiss(key)
    const commands = [...waiting, ...route.waiting]
    const joining = new Set(commands.flatMap((command) => (command.type === 'join' ? [command.connectionId] : [])))
    const others = [...sockets.values()].filter(({ connection }) => !joining.has(connection.id))
    route.waiting = [...others.flatMap(rejoin), ...commands]
    route.looks += 1
    if (route.looks > roomFindRetriesMax) {
      giveUp(route)
      return
    }
    const owner = takeOwner(key)
    const place: Place = owner === null ? 'here' : { node: owner }
    const pauseMs = Math.min(roomFindRetryMinMs * 2 ** (route.looks - 2), roomFindRetryMaxMs)
    // The first attempt is immediate: a room is claimed here before another owner is known.
    if (route.looks === 1) queueMicrotask(() => settle(route, place))
    else route.retry = setTimeout(settle, pauseMs, route, place)
  }

  function giveUp(route: Route): void {
    for (const { connection } of [...route.sockets.values()]) connection.close(closeCodes.restarting, 'UNAVAILABLE')
  }

  function drop(route: Route): void {
    if (route.retry) clearTimeout(route.retry)
    routes.delete(roomName(route.key))
  }

  return {
    tell(socket, command) {
      const { key, connection } = socket
      const name = roomName(key)
      let route = routes.get(name)
      if (!route) {
        route = { key, sockets: new Map(), place: 'here', waiting: [], looks: 0, retry: null }
        routes.set(name, route)
      }
      route.sockets.set(connection.id, socket)
      if (route.waiting.length >= roomCommandsWaitingMax) return false
      dispatch(route, command)
      return true
    },
    leave({ key, connection }) {
      const route = routes.get(roomName(key))
      if (!route?.sockets.delete(connection.id)) return
      dispatch(route, { type: 'disconnect', connectionId: connection.id })
      if (route.sockets.size === 0) drop(route)
    },
    leaving(key) {
      const route = routes.get(roomName(key))
      if (route?.place !== 'here') return
      dismiss(key)
      route.place = 'leaving'
    },
    moved(key, from, waiting) {
      const route = routes.get(roomName(key))
      if (hasStopped) return
      if (route && isAt(route.place, from)) {
        look(route, waiting)
        return
      }
      // It is located elsewhere already: its sockets have joined there or are about to.
      takeOwner(key)
      if (route) for (const command of waiting) if (command.type !== 'join') dispatch(route, command)
    },
    lost(node) {
      if (hasStopped) return
      for (const route of [...routes.values()]) if (isAt(route.place, node)) look(route, [])
    },
    heard(key) {
      const route = routes.get(roomName(key))
      if (route) route.looks = 0
    },
    nodes() {
      const found = new Set<string>()
      for (const { place } of routes.values()) if (typeof place === 'object' && place) found.add(place.node)
      return found
    },
    stop() {
      hasStopped = true
      for (const route of routes.values()) drop(route)
    },
  }
}
