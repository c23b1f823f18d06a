/** A page with the client, bundled for browsers. */
import { join } from 'node:path'

/** Serves the page at an origin of its own. Must be stopped. */
export function servePage(): { readonly url: string; stop(): void } {
  const bundle = Bun.build({ entrypoints: [join(import.meta.dir, 'page-client.ts')], target: 'browser' })
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (new URL(request.url).pathname !== '/client.js')
        return new Response('<!doctype html><title>Client</title><script type="module" src="/client.js"></script>', {
          headers: { 'content-type': 'text/html' },
        })
      const { outputs } = await bundle
      return new Response(await (outputs[0] as Blob).text(), { headers: { 'content-type': 'text/javascript' } })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) }
}
