/** A small HTTP client for tests: takes a path, returns the status, the headers and the parsed body. */

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed JSON body, or undefined if the body is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely; a wrong guess fails the test.
  readonly body: any
}

export type HeaderList = Readonly<Record<string, string>>

export interface Client {
  /** `body` is sent as JSON; `raw` is sent unchanged, with only the given headers. */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  get(path: string, headers?: HeaderList): Promise<Answer>
  post(path: string, body: unknown, headers?: HeaderList): Promise<Answer>
  patch(path: string, body: unknown, headers?: HeaderList): Promise<Answer>
  delete(path: string, headers?: HeaderList): Promise<Answer>
}

export interface RequestOptions {
  readonly body?: unknown
  readonly raw?: BodyInit
  readonly headers?: HeaderList
}

/** Reads `baseUrl` at each request, so that a client survives a restart of its server. */
export function createClient(baseUrl: () => string, credentials: HeaderList = {}): Client {
  const request = async (method: string, path: string, options: RequestOptions = {}): Promise<Answer> => {
    const headers: Record<string, string> = { ...credentials, ...options.headers }
    const init: RequestInit = { method, headers, redirect: 'manual' }
    if (options.raw !== undefined) init.body = options.raw
    else if (options.body !== undefined) {
      init.body = JSON.stringify(options.body)
      headers['content-type'] ??= 'application/json'
    }
    const response = await fetch(baseUrl() + path, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: parseJson(text) }
  }
  return {
    request,
    get: (path, headers) => request('GET', path, headers ? { headers } : {}),
    post: (path, body, headers) => request('POST', path, headers ? { body, headers } : { body }),
    patch: (path, body, headers) => request('PATCH', path, headers ? { body, headers } : { body }),
    delete: (path, headers) => request('DELETE', path, headers ? { headers } : {}),
  }
}

/** The number of responses by status. */
export function countStatuses(responses: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A query string with its `?`: strings and numbers as they are, everything else as JSON. Undefined members are left
 * out.
 */
export function query(params: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue
    search.set(name, typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value))
  }
  return `?${search}`
}
