/** A proxy before a real server that injects failures: delayed, truncated or single responses. */

/** Responds to a request; `pass` forwards it to the server. */
export type Answer = (request: Request, pass: () => Promise<Response>) => Promise<Response>

export interface Gate {
  readonly url: string
  close(): Promise<void>
}

/** Forwards signed headers unchanged, including the host. */
export function openGate(target: string, answer: Answer): Gate {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { method, headers } = request
      const { pathname, search } = new URL(request.url)
      const body = method === 'PUT' || method === 'POST' ? await request.bytes() : null
      return answer(request, () =>
        fetch(`${target}${pathname}${search}`, { method, headers, body, redirect: 'manual' }),
      )
    },
  })
  return { url: server.url.origin, close: () => server.stop(true) }
}
