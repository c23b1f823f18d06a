/**
 * What a test puts in place of the outside: mails, pushes and webhooks are kept, and requests of functions to other
 * servers get the test's replies. Functions run in other processes, so their requests arrive over HTTP.
 */
import type { Substitutes } from '../app/substitutes.ts'
import { relayErrorHeader, relayedUrlHeader } from '../host/relayed-fetch.ts'
import type { CapturedMail, CapturedPush, CapturedWebhook, Reply } from './types.ts'

interface Stub {
  readonly url: string | RegExp
  readonly reply: Reply
}

export interface Outside {
  readonly mail: CapturedMail[]
  readonly pushes: CapturedPush[]
  readonly webhooks: CapturedWebhook[]
  on(url: string | RegExp, reply: Reply): void
  readonly substitutes: Substitutes
  close(): Promise<void>
}

/** A string is the complete URL, or the URL without its query. */
const matches = ({ url: wanted }: Stub, url: string): boolean => {
  if (typeof wanted === 'string') return wanted === url || wanted === url.split('?')[0]
  // A global or sticky expression would continue where it ended.
  wanted.lastIndex = 0
  return wanted.test(url)
}

const missing = (url: string): string =>
  `No reply is set for fetch of ${url}. Add one to the test: t.fetch.on('${url.split('?')[0]}', () => new Response(…))`

/** Must be closed. */
export function openOutside(): Outside {
  const mail: CapturedMail[] = []
  const pushes: CapturedPush[] = []
  const webhooks: CapturedWebhook[] = []
  const stubs: Stub[] = []

  /** The stub that was added last wins. */
  const find = (url: string): Stub | undefined => stubs.findLast((stub) => matches(stub, url))

  async function answer(relayed: Request): Promise<Response> {
    const url = relayed.headers.get(relayedUrlHeader) ?? ''
    const stub = find(url)
    if (!stub) return refuse(missing(url))
    const headers = new Headers(relayed.headers)
    for (const name of [relayedUrlHeader, 'host', 'connection', 'content-length']) headers.delete(name)
    const { method } = relayed
    const body = method === 'GET' || method === 'HEAD' ? null : await relayed.arrayBuffer()
    try {
      return await stub.reply(new Request(url, { method, headers, body }))
    } catch (error) {
      return refuse(`The reply for ${url} failed: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  const relay = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: answer })
  const send: NonNullable<Substitutes['webhookFetch']> = async (url, init = {}) => {
    const outgoing = new Request(url, init)
    const body = await outgoing.clone().text()
    webhooks.push({ url, headers: Object.fromEntries(outgoing.headers), body, event: JSON.parse(body) })
    const stub = find(url)
    return stub ? stub.reply(outgoing) : new Response(null, { status: 204 })
  }
  return {
    mail,
    pushes,
    webhooks,
    on: (url, reply) => void stubs.push({ url, reply }),
    substitutes: {
      mails: {
        route: 'smtp',
        async send({ to, subject, text, html }) {
          mail.push({ to, subject, text, ...(html === undefined ? {} : { html }) })
        },
        close: async () => {},
      },
      push: (message) => void pushes.push(message),
      webhookFetch: send,
      fetchRelay: relay.url.href,
    },
    async close() {
      await relay.stop(true)
    },
  }
}

/** Headers hold ASCII only. */
const refuse = (message: string): Response =>
  new Response(null, { status: 502, headers: { [relayErrorHeader]: encodeURIComponent(message) } })
