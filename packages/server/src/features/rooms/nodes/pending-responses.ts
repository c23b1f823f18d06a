/** Responses that are awaited under ids: of other nodes to requests, and of rooms to actions of administrators. */
import { roomRequestsMax } from '../../../limits/rooms.ts'

export interface PendingResponsesOptions<Response> {
  /** Stands for a response that did not arrive in time. */
  readonly timedOut: Response
  /** Stands for the response to what was not sent, because too many are awaited. */
  readonly unsent: Response
}

export class PendingResponses<Response> {
  private readonly pending = new Map<string, (response: Response) => void>()

  constructor(private readonly options: PendingResponsesOptions<Response>) {}

  /** Calls `send` with the id of a new response, and resolves with that response. */
  begin(send: (id: string) => void, timeoutMs: number): Promise<Response> {
    const { timedOut, unsent } = this.options
    if (this.pending.size >= roomRequestsMax) return Promise.resolve(unsent)
    const id = crypto.randomUUID()
    return new Promise((resolve) => {
      const finish = (response: Response): void => {
        clearTimeout(timer)
        this.pending.delete(id)
        resolve(response)
      }
      const timer = setTimeout(() => finish(timedOut), timeoutMs)
      this.pending.set(id, finish)
      send(id)
    })
  }

  /** Delivers a response; ignored for an id under which none is awaited. */
  complete(id: string, response: Response): void {
    this.pending.get(id)?.(response)
  }
}
