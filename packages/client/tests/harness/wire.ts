/** Counts what a client sends: its requests, its sockets, and the messages on them. */

export interface Traffic {
  /** `GET /path` of every request. */
  readonly requests: readonly string[]
  /** Sockets that were created, and those that are open. */
  readonly created: number
  readonly open: number
  /** Messages that were sent over sockets. */
  readonly sent: readonly { readonly type: string; readonly channel?: string }[]
}

/** Options of a client whose traffic is observed; `current` and `subscribe` show it. */
export function observeWire() {
  const listeners = new Set<() => void>()
  let current: Traffic = { requests: [], created: 0, open: 0, sent: [] }
  const change = (next: Partial<Traffic>): void => {
    current = { ...current, ...next }
    for (const listener of [...listeners]) listener()
  }
  class ObservedSocket extends WebSocket {
    constructor(url: string, options?: string[]) {
      super(url, options)
      change({ created: current.created + 1, open: current.open + 1 })
      this.addEventListener('close', () => change({ open: current.open - 1 }))
    }

    override send(data: string): void {
      change({ sent: [...current.sent, JSON.parse(data)] })
      super.send(data)
    }
  }
  const send = (input: string, init?: RequestInit): Promise<Response> => {
    change({ requests: [...current.requests, `${init?.method} ${new URL(input).pathname}`] })
    return fetch(input, init)
  }
  return {
    options: { fetch: send as typeof fetch, WebSocket: ObservedSocket as unknown as typeof WebSocket },
    get current() {
      return current
    },
    subscribe(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    /** How many messages of a type were sent. */
    count: (type: string): number => current.sent.filter((message) => message.type === type).length,
    /** How many reads of the rows of a table were sent. */
    reads: (table: string): number => current.requests.filter((one) => one.endsWith(`/tables/${table}`)).length,
  }
}

/** A `fetch` that never answers requests whose URL contains `text`: they last until they are aborted. */
export function pauseRequests(text: string) {
  const begun = Promise.withResolvers<void>()
  const aborted = Promise.withResolvers<void>()
  let requests = 0
  const send = (input: string, init: RequestInit): Promise<Response> => {
    if (!decodeURIComponent(input).includes(text)) return fetch(input, init)
    requests++
    begun.resolve()
    return new Promise((_, reject) => {
      init.signal?.addEventListener('abort', () => {
        aborted.resolve()
        reject(init.signal?.reason)
      })
    })
  }
  return {
    fetch: send as typeof fetch,
    /** The first request was sent; one was aborted. */
    begun: begun.promise,
    aborted: aborted.promise,
    get requests() {
      return requests
    },
  }
}
