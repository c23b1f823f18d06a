/** Requests to other nodes that await a response. */
import { roomRequestsMax } from '../../../limits/rooms.ts'

export class PeerRequests {
  private readonly pending = new Map<number, (response: unknown) => void>()
  private lastId = 0

  /**
   * Sends a request under a new id. Resolves with the response, or with null after a timeout or with too many pending.
   */
  begin(send: (id: number) => void, timeoutMs: number): Promise<unknown> {
    if (this.pending.size >= roomRequestsMax) return Promise.resolve(null)
    this.lastId += 1
    const id = this.lastId
    return new Promise((resolve) => {
      const finish = (response: unknown): void => {
        clearTimeout(timer)
        this.pending.delete(id)
        resolve(response)
      }
      const timer = setTimeout(finish, timeoutMs, null)
      this.pending.set(id, finish)
      send(id)
    })
  }

  /** Delivers a response; ignored after the timeout. */
  complete(id: number, response: unknown): void {
    this.pending.get(id)?.(response)
  }
}
