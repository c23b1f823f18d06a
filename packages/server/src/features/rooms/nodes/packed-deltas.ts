/**
 * Shared deltas of one room in MessagePack, for sockets with the encoding `msgpack` (`packedKinds` in `protocol`). Each
 * path is sent as text once and by its number afterwards. The numbers are common to all such sockets of this node: each
 * receives the table of the paths before it follows the room, and every packed delta after that.
 */
import { type PackedValue, PackWriter } from '../../../base/text/msgpack.ts'
import { packedPathCharsMax, packedPathsMax } from '../../../limits/rooms.ts'
import type { RoomText } from '../engine/messages/messages.ts'
import { packedKinds } from '../protocol.ts'

/** A frame: text, or bytes that are valid until the next call. */
export type Frame = RoomText | Uint8Array

const deltaStart = '{"type":"shared_delta",'

export class PackedDeltas {
  readonly #numbers = new Map<string, number>()
  #chars = 0
  readonly #writer = new PackWriter()

  /** The message with the paths that have numbers. */
  table(): Uint8Array {
    this.#writer.reset()
    this.#writer.array(this.#numbers.size + 1)
    this.#writer.value(packedKinds.paths)
    for (const path of this.#numbers.keys()) this.#writer.text(path)
    return this.#writer.written()
  }

  /** Sends a message in its packed form, or as text where it has none. */
  send(text: RoomText, send: (frame: Frame) => void): void {
    if (text.startsWith(deltaStart)) this.#sendDelta(text, send)
    else send(text)
  }

  #sendDelta(text: RoomText, send: (frame: Frame) => void): void {
    const { delta, version } = JSON.parse(text) as { delta: Record<string, PackedValue>; version: number }
    const paths = Object.keys(delta)
    const chars = paths.reduce((sum, path) => sum + path.length, 0)
    if (!this.#hasSpaceFor(paths.length, chars)) {
      this.#numbers.clear()
      this.#chars = 0
      send(this.table())
      if (!this.#hasSpaceFor(paths.length, chars)) {
        send(text)
        return
      }
    }
    this.#writer.reset()
    this.#writer.array(2 + 2 * paths.length)
    this.#writer.value(packedKinds.sharedDelta)
    this.#writer.value(version)
    for (const path of paths) {
      this.#path(path)
      this.#writer.value(delta[path] as PackedValue)
    }
    send(this.#writer.written())
  }

  #path(path: string): void {
    const number = this.#numbers.get(path)
    if (number !== undefined) {
      this.#writer.value(number)
      return
    }
    this.#numbers.set(path, this.#numbers.size)
    this.#chars += path.length
    this.#writer.text(path)
  }

  /** Whether so many paths could all be new. */
  #hasSpaceFor(paths: number, chars: number): boolean {
    return this.#numbers.size + paths <= packedPathsMax && this.#chars + chars <= packedPathCharsMax
  }
}
