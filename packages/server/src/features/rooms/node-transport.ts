/**
 * Transport between rooms and sockets on any nodes: implements the engine's network, receives the commands of other
 * nodes' sockets, and sends requests to other nodes. A published message is sent to each node once. A single process
 * uses the local sockets only.
 */
import type { Log } from '../../base/log.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import type { CloseCode } from '../../http/sockets/socket-protocol.ts'
import { roomAskTimeoutMs, roomPeerCheckMs, roomPeerSilenceMax, roomQuestionsMax } from '../../limits/rooms.ts'
import type { RoomText } from './engine/messages.ts'
import type { RoomCommand, RoomKey, RoomNetwork } from './engine/ports.ts'
import type { LocalMembers } from './local-members.ts'
import { type Frame, type NodeChannels, openNodeChannels } from './node-channels.ts'
import { createRoomNodes, type NodeSession, type RoomNodes } from './nodes.ts'
import { createRemoteMembers } from './remote-members.ts'
import type { RoomLocator } from './room-locator.ts'

/** Messages between nodes. */
type Said =
  | readonly ['command', RoomKey, RoomCommand]
  | readonly ['send', connectionId: string, texts: readonly RoomText[]]
  | readonly ['publish', RoomKey, texts: readonly RoomText[], except: readonly string[]]
  | readonly ['follow' | 'unfollow', RoomKey, connectionId: string]
  | readonly ['close', connectionId: string, code: CloseCode, reason: string]
  | readonly ['moved', RoomKey, waiting: readonly RoomCommand[]]
  /** The receiver's messages were lost: its sockets must join again. */
  | readonly ['again']
  /** A heartbeat: it carries a sequence number and nothing else. */
  | readonly ['here']
  | readonly ['ask', number, question: unknown]
  | readonly ['answer', number, answer: unknown]

export interface NodeTransport {
  readonly network: RoomNetwork
  /** Null where this process is alone. */
  readonly nodes: RoomNodes | null
  /** Sends a command to a room on another node. False without a connection to the other nodes. */
  tell(node: string, key: RoomKey, command: RoomCommand): boolean
  /** The response of another node, or null when it times out. Rejects while the cluster cannot be reached. */
  ask(node: string, question: unknown): Promise<unknown>
  stop(): Promise<void>
}

export interface NodeTransportDeps {
  /** Null where this process is alone. */
  readonly cluster: Cluster | null
  readonly audience: LocalMembers
  readonly routes: RoomLocator
  readonly receive: (key: RoomKey, command: RoomCommand) => void
  /** Resolves when the room is no longer recorded as owned by this node. */
  readonly released: (key: RoomKey) => Promise<void>
  /** Answers a request of another node. */
  readonly answer: (question: unknown) => Promise<unknown>
  readonly elapsedMs: () => number
  readonly log: Log
}

/** Requests to other nodes that have not been answered. */
function createQuestions() {
  const open = new Map<number, (answer: unknown) => void>()
  let last = 0
  return {
    ask(send: (n: number) => void): Promise<unknown> {
      if (open.size >= roomQuestionsMax) return Promise.resolve(null)
      const n = ++last
      return new Promise((resolve) => {
        const settle = (answer: unknown): void => {
          clearTimeout(timer)
          open.delete(n)
          resolve(answer)
        }
        const timer = setTimeout(settle, roomAskTimeoutMs, null)
        open.set(n, settle)
        send(n)
      })
    },
    answered: (n: number, answer: unknown): void => open.get(n)?.(answer),
  }
}

export function createNodeTransport(deps: NodeTransportDeps): NodeTransport {
  const { cluster, audience, routes, receive, released, answer, elapsedMs, log } = deps
  const visitors = createRemoteMembers()
  const questions = createQuestions()
  let links: NodeChannels | null = null
  /** Checks of each node since its last message. */
  const silence = new Map<string, number>()
  const isHeard = (node: string): boolean => (silence.get(node) ?? roomPeerSilenceMax) < roomPeerSilenceMax

  const say = (node: string, ...said: Said): void => void links?.send(node, said)

  /** Disconnects the sockets of a node whose state is unknown; they join again when the node recovers. */
  function sendAway(node: string | null): void {
    for (const [connectionId, { key }] of visitors.of(node)) {
      visitors.remove(connectionId)
      receive(key, { type: 'disconnect', connectionId })
    }
  }

  /** A command from another node's socket. One for a room that has left this node is returned. */
  function visit(node: string, key: RoomKey, command: RoomCommand): void {
    if (command.type !== 'kick') {
      const { connectionId } = command
      if (command.type === 'join') visitors.add(connectionId, { node, key })
      else if (visitors.find(connectionId)?.node !== node) {
        if (command.type !== 'disconnect') say(node, 'moved', key, [command])
        return
      }
    }
    receive(key, command)
    if (command.type === 'disconnect') visitors.remove(command.connectionId)
  }

  function heard(from: string, said: Said): void {
    switch (said[0]) {
      case 'command':
        visit(from, said[1], said[2])
        break
      case 'send': {
        const socket = audience.find(said[1])
        if (socket) audience.send(socket, said[2])
        break
      }
      case 'publish':
        audience.publish(said[1], said[2], said[3])
        break
      case 'follow':
      case 'unfollow': {
        const socket = audience.find(said[2])
        if (socket) audience[said[0]](said[1], socket)
        routes.heard(said[1])
        break
      }
      case 'close':
        audience.find(said[1])?.connection.close(said[2], said[3])
        break
      case 'moved':
        routes.moved(said[1], from, said[2])
        break
      case 'again':
        routes.lost(from)
        break
      case 'ask':
        answer(said[2]).then(
          (given) => say(from, 'answer', said[1], given),
          (error) => log.error('room.peer_request_failed', { error }),
        )
        break
      case 'answer':
        questions.answered(said[1], said[2])
        break
      case 'here':
    }
  }

  function open(cluster: Cluster, { name }: NodeSession): void {
    links = openNodeChannels({
      bus: cluster,
      own: name,
      onFrame(from, frame: Frame) {
        silence.set(from, 0)
        heard(from, frame as unknown as Said)
      },
      onGap(from) {
        sendAway(from)
        routes.lost(from)
        say(from, 'again')
      },
      log,
    })
  }

  /** The other nodes drop this one: it drops them, too, and enters again under another name. */
  function lose(): void {
    const known = links?.peers() ?? []
    links?.close()
    links = null
    silence.clear()
    sendAway(null)
    for (const node of new Set([...known, ...routes.nodes()])) routes.lost(node)
  }

  const nodes =
    cluster &&
    createRoomNodes({
      leases: cluster,
      elapsedMs,
      isHeard,
      onEntered: (session) => open(cluster, session),
      onLost: lose,
      log,
    })

  async function check(node: string): Promise<void> {
    say(node, 'here')
    silence.set(node, (silence.get(node) ?? 0) + 1)
    if (isHeard(node) || !nodes?.current || (await nodes.isAlive(node))) return
    links?.forget(node)
    silence.delete(node)
    sendAway(node)
    routes.lost(node)
  }

  const checks = setInterval(() => {
    // While the bus is down, silence of a node means nothing.
    if (!cluster?.isHealthy()) for (const node of silence.keys()) silence.set(node, 0)
    // Without an answer the node counts as alive; while the leases cannot be read, this node's own lease ends.
    else for (const node of links?.peers() ?? []) check(node).catch(() => undefined)
  }, roomPeerCheckMs)
  checks.unref()

  const network: RoomNetwork = {
    send(connectionId, texts) {
      const socket = audience.find(connectionId)
      const visitor = visitors.find(connectionId)
      if (socket) audience.send(socket, texts)
      else if (visitor) say(visitor.node, 'send', connectionId, texts)
    },
    publish(key, texts, except = []) {
      audience.publish(key, texts, except)
      for (const node of visitors.nodesFollowing(key)) say(node, 'publish', key, texts, except)
    },
    follow(key, connectionId) {
      const socket = audience.find(connectionId)
      const visitor = visitors.find(connectionId)
      if (socket) {
        audience.follow(key, socket)
        routes.heard(key)
      } else if (visitor) {
        visitors.follow(connectionId, visitor)
        say(visitor.node, 'follow', key, connectionId)
      }
    },
    unfollow(key, connectionId) {
      const socket = audience.find(connectionId)
      const visitor = visitors.find(connectionId)
      if (socket) audience.unfollow(key, socket)
      else if (visitor) {
        visitors.unfollow(connectionId, visitor)
        say(visitor.node, 'unfollow', key, connectionId)
      }
    },
    close(connectionId, code, reason) {
      const socket = audience.find(connectionId)
      const visitor = visitors.find(connectionId)
      if (socket) socket.connection.close(code, reason)
      else if (visitor) say(visitor.node, 'close', connectionId, code, reason)
    },
    moved(key, waiting) {
      routes.leaving(key)
      const guests = visitors.inRoom(key)
      const own = waiting.filter((command) => command.type === 'kick' || !visitors.find(command.connectionId))
      const theirs = new Map<string, RoomCommand[]>(guests.map(([, { node }]) => [node, []]))
      for (const command of waiting) {
        const visitor = command.type === 'kick' ? undefined : visitors.find(command.connectionId)
        if (visitor) theirs.get(visitor.node)?.push(command)
      }
      for (const [connectionId] of guests) visitors.remove(connectionId)
      // Until then, the store still names this node as the owner.
      void released(key).then(() => {
        for (const [node, commands] of theirs) say(node, 'moved', key, commands)
        routes.moved(key, 'here', own)
      })
    },
  }

  return {
    network,
    nodes,
    tell(node, key, command) {
      if (!links) return false
      say(node, 'command', key, command)
      return true
    },
    async ask(node, question) {
      await nodes?.enter()
      if (!(await nodes?.isAlive(node))) return null
      return questions.ask((n) => say(node, 'ask', n, question))
    },
    async stop() {
      clearInterval(checks)
      links?.close()
      links = null
      await nodes?.leave()
    },
  }
}
