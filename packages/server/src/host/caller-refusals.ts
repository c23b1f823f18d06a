/**
 * Refusals that the server gave to requests with the permissions of the caller. A function that does not catch one is
 * refused with it: the caller would have got the same answer. Errors past the access rules are never among them.
 */
import { isPlinthError, type PlinthError } from 'plinth-client'
import type { HostResponse } from '../engines/hosts/hosts.ts'
import { functionRefusalsMax } from '../limits/functions.ts'

const idHeader = 'x-request-id'

export class CallerRefusals {
  /** What the server reported, by the id under which the client's error names it. */
  readonly #reported = new Map<string, string>()
  #count = 0

  /** Notes a refusal, and gives its response an id of its own. */
  note(response: HostResponse): HostResponse {
    const { status, headers, body } = response
    if (status < 400 || status >= 500) return response
    const id = `${headers[idHeader] ?? ''}#${++this.#count}`
    this.#reported.set(id, summaryOf(status, parse(body)))
    const [oldest] = this.#reported.keys()
    if (this.#reported.size > functionRefusalsMax && oldest !== undefined) this.#reported.delete(oldest)
    return { ...response, headers: { ...headers, [idHeader]: id } }
  }

  /** Whether an error is one of them. Transactions repeat a refusal in an error of their own, without an id. */
  includes(error: unknown): error is PlinthError {
    if (!isPlinthError(error)) return false
    const { requestId, status } = error
    const summary = summaryOf(status, error)
    if (requestId !== undefined) return this.#reported.get(requestId) === summary
    return [...this.#reported.values()].includes(summary)
  }
}

type Reported = Partial<Pick<PlinthError, 'slug' | 'message' | 'data'>>

const summaryOf = (status: number, { slug, message, data }: Reported): string =>
  JSON.stringify([status, slug, message, data ?? null])

function parse(body: HostResponse['body']): Reported {
  try {
    return typeof body === 'string' ? (JSON.parse(body) ?? {}) : {}
  } catch {
    return {}
  }
}
