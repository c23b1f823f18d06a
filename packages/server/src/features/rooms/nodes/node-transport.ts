/**
 * Transport between rooms and sockets on any nodes: implements the engine's network, receives the commands of other
 * nodes' sockets, and sends requests to other nodes. A published message is sent to each node once. A single process
 * uses the local sockets only.
 */
import type { Log } from '../../../base/log.ts'
import type { Cluster } from '../../../engines/cluster/cluster.ts'
import type { CloseCode } from '../../../http/sockets/socket-protocol.ts'
import { roomPeerCheckMs, roomPeerSilenceMax, roomRequestTimeoutMs } from '../../../limits/rooms.ts'
import type { RoomText } from '../engine/messages/messages.ts'
import type { RoomCommand, RoomKey, RoomNetwork } from '../engine/ports.ts'
import type { LocalMembers } from './local-members.ts'
import { type Frame, type NodeChannels, openNodeChannels } from './node-channels.ts'
import { createRoomNodes, type NodeSession, type RoomNodes } from './nodes.ts'
import { PendingResponses } from './pending-responses.ts'
import { createRemoteMembers } from './remote-members.ts'
import type { RoomLocator } from './room-locator.ts'

/** Messages between nodes. */
type PeerMessage =
  | readonly ['command', RoomKey, RoomCommand]
  | readonly ['send', connectionId: string, texts: readonly RoomText[]]
  | readonly ['publish', RoomKey, texts: readonly RoomText[], except: readonly string[]]
  | readonly ['follow' | 'unfollow', RoomKey, connectionId: string]
  | readonly ['close', connectionId: string, code: CloseCode, reason: string]
  | readonly ['moved', RoomKey, waiting: readonly RoomCommand[]]
  /** Messages of the receiver were lost: its sockets must join again. */
  | readonly ['rejoin']
  /** Carries a sequence number and nothing else. */
  | readonly ['heartbeat']
  | readonly ['request', string, request: unknown]
  | readonly ['response', string, response: unknown]

/** The message for the sender of an action; `moved` if the room has left this node, `unknown` after a timeout. */
export type ActionResponse = { readonly text: RoomText } | 'moved' | 'unknown'

export interface NodeTransportDeps {
  /** Null in a single process. */
  readonly cluster: Cluster | null
  readonly localMembers: LocalMembers
  readonly locator: RoomLocator
  /** Responses to actions of administrators, whose ids stand in place of sockets. */
  readonly actionResponses: Pick<PendingResponses<ActionResponse>, 'complete'>
  readonly receive: (key: RoomKey, command: RoomCommand) => void
  /** Resolves when the room is no longer recorded as owned by this node. */
  readonly released: (key: RoomKey) => Promise<void>
  /** Answers a request of another node. */
  readonly answer: (request: unknown) => Promise<unknown>
  readonly elapsedMs: () => number
  readonly log: Log
}

export class NodeTransport implements RoomNetwork {
  /** Null in a single process. */
  readonly nodes: RoomNodes | null
  private readonly remoteMembers = createRemoteMembers()
  private readonly requests = new PendingResponses<unknown>({ timedOut: null, unsent: null })
  /** Null outside a session of this node. */
  private channels: NodeChannels | null = null
  /** Checks of each node since its last message. */
  private readonly silence = new Map<string, number>()
  private readonly checks: ReturnType<typeof setInterval>

  constructor(private readonly deps: NodeTransportDeps) {
    const { cluster, elapsedMs, log } = deps
    this.nodes =
      cluster &&
      createRoomNodes({
        leases: cluster,
        elapsedMs,
        isResponsive: (node) => this.isResponsive(node),
        onEntered: (session) => this.open(cluster, session),
        onLost: () => this.endSession(),
        log,
      })
    this.checks = setInterval(() => this.checkPeers(), roomPeerCheckMs)
    this.checks.unref()
  }

  /** Sends a command to a room on another node. False without a connection to the other nodes. */
  sendCommand(node: string, key: RoomKey, command: RoomCommand): boolean {
    if (!this.channels) return false
    this.notify(node, 'command', key, command)
    return true
  }

  /** The response of another node, or null when it times out. Rejects while the cluster cannot be reached. */
  async request(node: string, request: unknown, timeoutMs = roomRequestTimeoutMs): Promise<unknown> {
    await this.nodes?.enter()
    if (!(await this.nodes?.isAlive(node))) return null
    return this.requests.begin((id) => this.notify(node, 'request', id, request), timeoutMs)
  }

  async stop(): Promise<void> {
    clearInterval(this.checks)
    this.channels?.close()
    this.channels = null
    await this.nodes?.leave()
  }

  // The network of the engine

  send(connectionId: string, texts: readonly RoomText[]): void {
    const { localMembers } = this.deps
    const socket = localMembers.find(connectionId)
    if (socket) {
      localMembers.send(socket, texts)
      return
    }
    const member = this.remoteMembers.find(connectionId)
    if (member) this.notify(member.node, 'send', connectionId, texts)
    else if (texts[0] !== undefined) this.deps.actionResponses.complete(connectionId, { text: texts[0] })
  }

  publish(key: RoomKey, texts: readonly RoomText[], except: readonly string[] = []): void {
    this.deps.localMembers.publish(key, texts, except)
    for (const node of this.remoteMembers.nodesFollowing(key)) this.notify(node, 'publish', key, texts, except)
  }

  follow(key: RoomKey, connectionId: string): void {
    const { localMembers, locator } = this.deps
    const socket = localMembers.find(connectionId)
    const member = this.remoteMembers.find(connectionId)
    if (socket) {
      localMembers.follow(key, socket)
      locator.confirm(key)
    } else if (member) {
      this.remoteMembers.follow(connectionId, member)
      this.notify(member.node, 'follow', key, connectionId)
    }
  }

  unfollow(key: RoomKey, connectionId: string): void {
    const socket = this.deps.localMembers.find(connectionId)
    const member = this.remoteMembers.find(connectionId)
    if (socket) this.deps.localMembers.unfollow(key, socket)
    else if (member) {
      this.remoteMembers.unfollow(connectionId, member)
      this.notify(member.node, 'unfollow', key, connectionId)
    }
  }

  close(connectionId: string, code: CloseCode, reason: string): void {
    const socket = this.deps.localMembers.find(connectionId)
    const member = this.remoteMembers.find(connectionId)
    if (socket) socket.connection.close(code, reason)
    else if (member) this.notify(member.node, 'close', connectionId, code, reason)
  }

  moved(key: RoomKey, waiting: readonly RoomCommand[]): void {
    const { locator, released } = this.deps
    locator.leaving(key)
    const remote = this.remoteMembers.inRoom(key)
    const local: RoomCommand[] = []
    const byNode = new Map<string, RoomCommand[]>(remote.map(([, { node }]) => [node, []]))
    for (const command of waiting) {
      // Its request is rejected, and its sender may send the action again.
      if (command.type === 'act' && command.as) {
        this.deps.actionResponses.complete(command.connectionId, 'moved')
        continue
      }
      const member = command.type === 'kick' ? undefined : this.remoteMembers.find(command.connectionId)
      if (member) byNode.get(member.node)?.push(command)
      else local.push(command)
    }
    for (const [connectionId] of remote) this.remoteMembers.remove(connectionId)
    // Until the release is stored, this node is still recorded as the owner.
    void released(key).then(() => {
      for (const [node, commands] of byNode) this.notify(node, 'moved', key, commands)
      locator.moved(key, 'here', local)
    })
  }

  // Messages of other nodes

  private notify(node: string, ...message: PeerMessage): void {
    this.channels?.send(node, message)
  }

  private open(cluster: Cluster, { name }: NodeSession): void {
    this.channels = openNodeChannels({
      bus: cluster,
      own: name,
      onFrame: (from, frame: Frame) => {
        this.silence.set(from, 0)
        this.onMessage(from, frame as unknown as PeerMessage)
      },
      onGap: (from) => {
        this.disconnectRemote(from)
        this.deps.locator.lost(from)
        this.notify(from, 'rejoin')
      },
      log: this.deps.log,
    })
  }

  private onMessage(from: string, message: PeerMessage): void {
    const { localMembers, locator } = this.deps
    switch (message[0]) {
      case 'command':
        this.receiveRemote(from, message[1], message[2])
        break
      case 'send': {
        const socket = localMembers.find(message[1])
        if (socket) localMembers.send(socket, message[2])
        break
      }
      case 'publish':
        localMembers.publish(message[1], message[2], message[3])
        break
      case 'follow':
      case 'unfollow': {
        const socket = localMembers.find(message[2])
        if (socket) localMembers[message[0]](message[1], socket)
        locator.confirm(message[1])
        break
      }
      case 'close':
        localMembers.find(message[1])?.connection.close(message[2], message[3])
        break
      case 'moved':
        locator.moved(message[1], from, message[2])
        break
      case 'rejoin':
        locator.lost(from)
        break
      case 'request':
        this.answerRequest(from, message[1], message[2])
        break
      case 'response':
        this.requests.complete(message[1], message[2])
        break
      case 'heartbeat':
    }
  }

  private answerRequest(from: string, id: string, request: unknown): void {
    this.deps.answer(request).then(
      (response) => this.notify(from, 'response', id, response),
      (error) => this.deps.log.error('room.peer_request_failed', { error }),
    )
  }

  /** Processes a command from another node's socket. A command for a room that has left this node is returned. */
  private receiveRemote(node: string, key: RoomKey, command: RoomCommand): void {
    if (command.type !== 'kick') {
      const { connectionId } = command
      if (command.type === 'join') this.remoteMembers.add(connectionId, { node, key })
      else if (this.remoteMembers.find(connectionId)?.node !== node) {
        if (command.type !== 'disconnect') this.notify(node, 'moved', key, [command])
        return
      }
    }
    this.deps.receive(key, command)
    if (command.type === 'disconnect') this.remoteMembers.remove(command.connectionId)
  }

  // Failures of nodes

  /** Disconnects the sockets of a node (all if null) whose state is unknown; they join again when it recovers. */
  private disconnectRemote(node: string | null): void {
    for (const [connectionId, { key }] of this.remoteMembers.of(node)) {
      this.remoteMembers.remove(connectionId)
      this.deps.receive(key, { type: 'disconnect', connectionId })
    }
  }

  /** The other nodes drop this one: it drops them too, and enters again under another name. */
  private endSession(): void {
    const known = this.channels?.peers() ?? []
    this.channels?.close()
    this.channels = null
    this.silence.clear()
    this.disconnectRemote(null)
    for (const node of new Set([...known, ...this.deps.locator.nodes()])) this.deps.locator.lost(node)
  }

  private isResponsive(node: string): boolean {
    return (this.silence.get(node) ?? roomPeerSilenceMax) < roomPeerSilenceMax
  }

  private checkPeers(): void {
    // While the bus is down, silence of a node means nothing.
    if (!this.deps.cluster?.isHealthy()) for (const node of this.silence.keys()) this.silence.set(node, 0)
    // A node counts as alive while leases cannot be read: this node's own lease then ends as well.
    else for (const node of this.channels?.peers() ?? []) this.checkPeer(node).catch(() => undefined)
  }

  private async checkPeer(node: string): Promise<void> {
    this.notify(node, 'heartbeat')
    this.silence.set(node, (this.silence.get(node) ?? 0) + 1)
    if (this.isResponsive(node) || !this.nodes?.current || (await this.nodes.isAlive(node))) return
    this.channels?.forget(node)
    this.silence.delete(node)
    this.disconnectRemote(node)
    this.deps.locator.lost(node)
  }
}
