/**
 * Responses to actions that administrators send: each is awaited on the node that owns the room, under an id in place
 * of a socket.
 */
import { roomActionAnswerMs, roomRequestsMax } from '../../../limits/rooms.ts'
import type { RoomText } from '../engine/messages/messages.ts'

/** The message for the sender; `moved` if the room has left this node before, `unknown` after a timeout. */
export type AwaitedResponse = { readonly text: RoomText } | 'moved' | 'unknown'

export interface AwaitedResponses {
  /**
   * Sends a command with the id of a new response, and resolves with it. Resolves with `unknown` after
   * `roomActionAnswerMs`, and at once with `moved`, nothing sent, while too many are awaited.
   */
  begin(send: (id: string) => void): Promise<AwaitedResponse>
  /** Ignored for an id that nothing awaits. */
  deliver(id: string, texts: readonly RoomText[]): void
  moved(id: string): void
}

export function createAwaitedResponses(): AwaitedResponses {
  const awaited = new Map<string, (response: AwaitedResponse) => void>()
  return {
    begin(send) {
      if (awaited.size >= roomRequestsMax) return Promise.resolve('moved')
      const id = crypto.randomUUID()
      return new Promise((resolve) => {
        const finish = (response: AwaitedResponse): void => {
          clearTimeout(timer)
          awaited.delete(id)
          resolve(response)
        }
        const timer = setTimeout(finish, roomActionAnswerMs, 'unknown' as const)
        awaited.set(id, finish)
        send(id)
      })
    },
    deliver(id, [text]) {
      if (text !== undefined) awaited.get(id)?.({ text })
    },
    moved: (id) => awaited.get(id)?.('moved'),
  }
}
