/**
 * Where the rooms of this node's sockets are: here, on another node, or being looked for. What sockets say is brought
 * there in order, and kept for a moment while nobody knows. A room that has moved is joined anew by all of its sockets,
 * which are not told: they get a `sync` and go on.
 */
import { closeCodes } from '../../http/sockets/socket-protocol.ts'
import {
  roomCommandsWaitingMax,
  roomFindRetriesMax,
  roomFindRetryMaxMs,
  roomFindRetryMinMs,
} from '../../limits/rooms.ts'
import type { RoomSocket } from './audience.ts'
import { type RoomCommand, type RoomKey, roomName } from './engine/ports.ts'

export interface Routes {
  /** A socket says something to its room. False when too much waits to be said. */
  tell(socket: RoomSocket, command: RoomCommand): boolean
  /** The socket is gone. */
  leave(socket: RoomSocket): void
  /** The room is going from here, and will have `moved` in a moment; what is said to it waits. */
  leaving(key: RoomKey): void
  /** The room is not where it was, `here` or on a node; `waiting` are commands that have not been dealt with there. */
  moved(key: RoomKey, from: string, waiting: readonly RoomCommand[]): void
  /** What was said to the node, or heard from it, may be lost: every room there is joined anew. */
  lost(node: string): void
  /** The room has answered, so that it is where it is believed to be. */
  heard(key: RoomKey): void
  /** Nodes that rooms are believed to be on. */
  nodes(): ReadonlySet<string>
  stop(): void
}

export interface RoutesDeps {
  /** Gives a command to the room on this node. */
  readonly receive: (key: RoomKey, command: RoomCommand) => void
  /** Gives a command to the room on another node. False when there is no way there. */
  readonly relay: (node: string, key: RoomKey, command: RoomCommand) => boolean
  /** The node that was found to have the room when this one wanted it. */
  readonly takeOwner: (key: RoomKey) => string | null
  /** What is published in the room is not to be brought to its sockets until they follow it anew. */
  readonly dismiss: (key: RoomKey) => void
}

/** `here`, the name of a node, `leaving` while it is about to go from here, or null while it is looked for. */
type Place = 'here' | { readonly node: string } | 'leaving' | null

interface Route {
  readonly key: RoomKey
  readonly sockets: Map<string, RoomSocket>
  place: Place
  /** Commands since it was last known. */
  waiting: RoomCommand[]
  /** Looks since it was last heard. */
  looks: number
  retry: ReturnType<typeof setTimeout> | null
}

/** A join of a socket that has joined before. */
function rejoin(socket: RoomSocket): RoomCommand[] {
  const { id, caller } = socket.connection
  // Whether it is still slow will be seen again.
  socket.isSlow = false
  return caller.kind === 'user' ? [{ type: 'join', connectionId: id, auth: caller.auth, resume: null }] : []
}

/** Whether it is `here`, or on the node of that name. */
const isAt = (place: Place, where: string): boolean =>
  typeof place === 'object' ? place?.node === where : where === 'here' && place !== null

export function createRoutes({ receive, relay, takeOwner, dismiss }: RoutesDeps): Routes {
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

  /** The room is not where it was: finds it, and has every socket join there before anything else is said. */
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
    // At first at once: a room is asked for here before it is known to be elsewhere.
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
      // It is believed to be elsewhere, where its sockets have joined or are about to.
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
