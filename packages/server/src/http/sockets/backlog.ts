/** The bound on the unread bytes of all sockets together: terminates the slowest where they exceed it. */
import type { Log } from '../../base/log.ts'
import type { Socket } from './socket.ts'

export interface BacklogOptions {
  readonly bytesMax: number
  readonly log: Log
  /** Called for each socket that is terminated. */
  readonly onSlow: () => void
}

export class Backlog {
  readonly #bytesMax: number
  readonly #log: Log
  readonly #onSlow: () => void
  /** Sockets with unread bytes at the last check. */
  readonly #sockets = new Set<Socket>()
  #isCheckDue = false

  constructor({ bytesMax, log, onSlow }: BacklogOptions) {
    this.#bytesMax = bytesMax
    this.#log = log
    this.#onSlow = onSlow
  }

  /** Schedules a check when a socket begins to buffer: between two ticks a burst could use any amount of memory. */
  add(socket: Socket): void {
    this.#sockets.add(socket)
    if (this.#isCheckDue) return
    this.#isCheckDue = true
    setImmediate(() => this.#check())
  }

  delete(socket: Socket): void {
    this.#sockets.delete(socket)
  }

  /** Adds the sockets that have unread bytes, and checks at once. */
  checkAll(sockets: Iterable<Socket>): void {
    for (const socket of sockets) if (socket.buffered > 0) this.#sockets.add(socket)
    this.#check()
  }

  #check(): void {
    this.#isCheckDue = false
    let sum = 0
    for (const socket of this.#sockets) {
      if (socket.buffered === 0) this.#sockets.delete(socket)
      sum += socket.buffered
    }
    if (sum <= this.#bytesMax) return
    for (const socket of [...this.#sockets].sort((a, b) => b.buffered - a.buffered)) {
      if (sum <= this.#bytesMax) break
      sum -= socket.buffered
      this.#sockets.delete(socket)
      this.#onSlow()
      this.#log.warn('socket.slow_closed', { socketId: socket.id, bufferedBytes: socket.buffered })
      socket.terminate()
    }
  }
}
