/** A JSON client for the API, with the service key. */

export interface Backend {
  get<Body>(path: string): Promise<Body>
  post<Body>(path: string, body: object): Promise<Body>
}

/** An error response of the server. The message is for the operator of the example, not for visitors of the page. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** Requests throw an `ApiError` with the response of the server. */
export function createBackend(url: string, serviceKey: string): Backend {
  const headers = { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' }
  async function request<Body>(path: string, init: RequestInit): Promise<Body> {
    const response = await fetch(url + path, { ...init, headers })
    if (!response.ok) throw new ApiError(response.status, `${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Body
  }
  return {
    get: (path) => request(path, {}),
    post: (path, body) => request(path, { method: 'POST', body: JSON.stringify(body) }),
  }
}
