/** A site as applications have it: its own pages, and the API of a server under the same origin. */
import { join } from 'node:path'
import type * as Plinth from '../../src/all.ts'
import type * as Ssr from '../../src/ssr/index.ts'

/** The globals of its pages. */
export type SiteGlobals = typeof globalThis & { readonly plinth: typeof Plinth; readonly ssr: typeof Ssr }

export interface Site {
  readonly url: string
  /** Where requests to `/api/` go, once the server is there. */
  api: string
  stop(): void
}

type Respond = (request: Request) => Response | undefined | Promise<Response | undefined>

/** Paths that `respond` does not answer are pages that run `script` with the modules. Must be stopped. */
export function openSite(respond: Respond = () => undefined, script = ''): Site {
  const bundle = Bun.build({ entrypoints: [join(import.meta.dir, 'site-modules.ts')], target: 'browser' })
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const answer = await respond(request)
      if (answer) return answer
      const { pathname, search } = new URL(request.url)
      if (pathname.startsWith('/api/'))
        return fetch(site.api + pathname + search, {
          method: request.method,
          headers: request.headers,
          body: request.body,
          redirect: 'manual',
        })
      if (pathname === '/client.js') {
        const { outputs } = await bundle
        return new Response(await (outputs[0] as Blob).text(), { headers: { 'content-type': 'text/javascript' } })
      }
      return page('', script)
    },
  })
  const site: Site = {
    // Passkeys need a name.
    url: `http://localhost:${server.port}`,
    api: '',
    stop: () => void server.stop(true),
  }
  return site
}

/** A page with the modules, which runs `script`. */
export const page = (body: string, script: string, headers: [name: string, value: string][] = []): Response =>
  new Response(
    `<!doctype html><title>App</title><body>${body}</body>
    <script type="module" src="/client.js"></script><script type="module">${script}</script>`,
    { headers: [['Content-Type', 'text/html'], ...headers] },
  )
