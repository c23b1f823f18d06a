/** A gate before a real server, to have it fail in ways that no server fails on demand: late, half, or once. */

/** Answers a request; `pass` asks the server behind the gate. */
export type Answer = (request: Request, pass: () => Promise<Response>) => Promise<Response>

export interface Gate {
  readonly url: string
  close(): Promise<void>
}

/** What is signed stays as it was signed, the name of the host included. */
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
