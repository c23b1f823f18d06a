/** A local browser push service: provides endpoints, accepts messages, and returns scripted responses. */
import { createPublicKey } from 'node:crypto'
import { jwtVerify } from 'jose'
import type { Clock } from '../../../src/base/clock.ts'
import { createWatch } from './watch.ts'
import { type Browser, decryptWebPush, newBrowser, subscriptionOf } from './web-push.ts'

export interface TakenMessage {
  readonly headers: Headers
  /** The encrypted body. */
  readonly body: Uint8Array
  /** The decrypted payload, as a service worker receives it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages freely; a wrong guess fails the test.
  readonly json: any
}

export interface SubscribedBrowser {
  /** The token to register. */
  readonly token: string
  readonly taken: readonly TakenMessage[]
  /** The next responses of the push service for this browser. */
  answer(...responses: Response[]): void
}

export interface PushEndpoint {
  readonly origin: string
  subscribe(browser?: Browser): SubscribedBrowser
  /** Resolves once the condition is true; checked after every message. */
  until(isSo: () => boolean): Promise<void>
  close(): Promise<void>
}

/** Must be closed. Returns 403 for messages not signed with this VAPID key for this service. */
export function openPushEndpoint(publicKey: string, clock: Clock): PushEndpoint {
  const point = Buffer.from(publicKey, 'base64url')
  const coordinates = { x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33) }
  const key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', ...coordinates }, format: 'jwk' })
  const browsers = new Map<string, { browser: Browser; taken: TakenMessage[]; answers: Response[] }>()
  const watch = createWatch()

  async function isSigned(headers: Headers): Promise<boolean> {
    const [, token = '', given] = /^vapid t=([^,]+), k=(\S+)$/.exec(headers.get('authorization') ?? '') ?? []
    try {
      const currentDate = new Date(clock.now())
      const { payload } = await jwtVerify(token, key, { audience: origin, algorithms: ['ES256'], currentDate })
      const lifetimeMs = (payload.exp ?? 0) * 1000 - clock.now()
      return given === publicKey && payload.sub === 'mailto:ops@example.com' && lifetimeMs <= 24 * 60 * 60 * 1000
    } catch {
      return false
    }
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const found = browsers.get(new URL(request.url).pathname)
      const body = await request.bytes()
      if (!found) return new Response(null, { status: 404 })
      if (!(await isSigned(request.headers))) return new Response(null, { status: 403 })
      const scripted = found.answers.shift()
      if (!scripted) {
        const json: unknown = JSON.parse(decryptWebPush(body, found.browser))
        found.taken.push({ headers: request.headers, body, json })
      }
      watch.notify()
      return scripted ?? new Response(null, { status: 201 })
    },
  })
  const origin: string = server.url.origin

  return {
    origin,
    subscribe(browser = newBrowser()) {
      const path = `/send/${crypto.randomUUID()}`
      const entry = { browser, taken: [] as TakenMessage[], answers: [] as Response[] }
      browsers.set(path, entry)
      return {
        token: subscriptionOf(`${origin}${path}`, browser),
        taken: entry.taken,
        answer: (...responses) => void entry.answers.push(...responses),
      }
    },
    until: watch.until,
    close: () => server.stop(true),
  }
}
