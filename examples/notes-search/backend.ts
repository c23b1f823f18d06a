/** The server as this example's programs ask it: JSON there and back, with the service key. */

export interface Backend {
  get<Answer>(path: string): Promise<Answer>
  post<Answer>(path: string, body: object): Promise<Answer>
}

/** A refusal of the server. The message is for whoever runs the example, not for visitors of its page. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** Throws `Refusal` with what the server says. */
export function createBackend(url: string, serviceKey: string): Backend {
  const headers = { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' }
  async function ask<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(url + path, { ...init, headers })
    if (!response.ok) throw new Refusal(response.status, `${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Answer
  }
  return {
    get: (path) => ask(path, {}),
    post: (path, body) => ask(path, { method: 'POST', body: JSON.stringify(body) }),
  }
}
