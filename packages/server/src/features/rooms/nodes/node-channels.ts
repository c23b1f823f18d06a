/**
 * Ordered channels between nodes. Frames sent within one microtask are batched into one message. The bus can lose
 * messages, so they are numbered: the receiver reports a gap, and `node-transport` recovers. Lost messages are not
 * repeated.
 */
import type { Log } from '../../../base/log.ts'
import type { Bus } from '../../../engines/cluster/cluster.ts'

/** One message between nodes; its first member is its type. */
export type Frame = readonly [kind: string, ...parts: unknown[]]

export interface NodeChannels {
  /** Queues a frame, sent in the order of the calls at the end of the microtask. */
  send(node: string, frame: Frame): void
  /** Nodes with which messages were exchanged. */
  peers(): readonly string[]
  /** Drops the channel of a node whose lease has ended. */
  forget(node: string): void
  close(): void
}

export interface NodeChannelsDeps {
  readonly bus: Bus
  /** This node's name. */
  readonly own: string
  readonly onFrame: (from: string, frame: Frame) => void
  /** Messages of the node were lost. Called before its next message is delivered. */
  readonly onGap: (from: string) => void
  readonly log: Log
}

interface Peer {
  readonly waiting: Frame[]
  sent: number
  received: number
}

interface Message {
  readonly from: string
  readonly n: number
  readonly frames: readonly Frame[]
}

const channelOf = (node: string): string => `rooms:${node}`

/** Opens the channels of a node. Its name must not have been used before. */
export function openNodeChannels({ bus, own, onFrame, onGap, log }: NodeChannelsDeps): NodeChannels {
  const peers = new Map<string, Peer>()
  const unsent = new Set<string>()
  let isClosed = false

  function peerOf(node: string): Peer {
    const known = peers.get(node)
    if (known) return known
    const peer: Peer = { waiting: [], sent: 0, received: 0 }
    peers.set(node, peer)
    return peer
  }

  function flush(): void {
    for (const node of unsent) {
      const peer = peers.get(node)
      if (!peer) continue
      const message: Message = { from: own, n: ++peer.sent, frames: peer.waiting.splice(0) }
      bus.publish(channelOf(node), JSON.stringify(message))
    }
    unsent.clear()
  }

  function receive(text: string): void {
    if (isClosed) return
    const { from, n, frames } = JSON.parse(text) as Message
    const peer = peerOf(from)
    const isNext = n === peer.received + 1
    peer.received = n
    if (!isNext) {
      log.warn('room.peer_messages_lost', { node: from })
      onGap(from)
    }
    for (const frame of frames) onFrame(from, frame)
  }

  const unsubscribe = bus.subscribe(channelOf(own), receive)

  return {
    send(node, frame) {
      if (isClosed) return
      peerOf(node).waiting.push(frame)
      if (unsent.size === 0) queueMicrotask(flush)
      unsent.add(node)
    },
    peers: () => [...peers.keys()],
    forget: (node) => void peers.delete(node),
    close() {
      flush()
      isClosed = true
      unsubscribe()
    },
  }
}
