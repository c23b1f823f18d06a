/**
 * Refusals that the server gave to requests with the permissions of the caller. A function that does not catch one is
 * refused with it: the caller would have got the same answer. Errors past the access rules are never among them.
 */
import { isPlinthError } from 'plinth-client'
import type { HostResponse } from '../engines/hosts/hosts.ts'
import { functionRefusalsMax } from '../limits/functions.ts'

const idHeader = 'x-request-id'

/** What the server reported. */
export interface CallerRefusal {
  readonly status: number
  readonly slug: string
  readonly message: string
  readonly data?: unknown
}

export class CallerRefusals {
  /** By the id under which the client's error names it. */
  readonly #noted = new Map<string, CallerRefusal>()
  #count = 0

  /** Notes a refusal, and gives its response an id of its own. */
  note(response: HostResponse): HostResponse {
    const { headers } = response
    const refusal = parse(response)
    if (!refusal) return response
    const id = `${headers[idHeader] ?? ''}#${++this.#count}`
    this.#noted.set(id, refusal)
    const [oldest] = this.#noted.keys()
    if (this.#noted.size > functionRefusalsMax && oldest !== undefined) this.#noted.delete(oldest)
    return { ...response, headers: { ...headers, [idHeader]: id } }
  }

  /**
   * The refusal that an error stands for; null if there is none. Transactions repeat a refusal in an error of their
   * own, without an id: then the last one with its status and slug.
   */
  find(error: unknown): CallerRefusal | null {
    if (!isPlinthError(error)) return null
    const { requestId, status, slug } = error
    const noted = requestId === undefined ? [...this.#noted.values()].toReversed() : [this.#noted.get(requestId)]
    return noted.find((refusal) => refusal?.status === status && refusal.slug === slug) ?? null
  }
}

/** Null for a response that is no refusal. */
function parse({ status, body }: HostResponse): CallerRefusal | null {
  if (status < 400 || status >= 500 || typeof body !== 'string') return null
  try {
    const { slug, message, data } = JSON.parse(body)
    return { status, slug, message, ...(data === undefined ? {} : { data }) }
  } catch {
    return null
  }
}
