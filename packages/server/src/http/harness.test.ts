/** For the tests of this folder: the HTTP core over real sockets, with tiny endpoints and a clock that stands still. */
import { afterEach, expect } from 'bun:test'
import { connect, type Socket } from 'node:net'
import type { UserCaller } from '../access/caller.ts'
import { userCaller } from '../access/callers.test.ts'
import { createServiceKeys } from '../access/service-keys.ts'
import { manualClock } from '../base/clock.ts'
import { AdmissionControl } from '../base/concurrency/admission-control.ts'
import { createLog } from '../base/log.ts'
import { parseTrustProxy } from '../base/network/address.ts'
import { createMemoryCluster } from '../engines/cluster/memory.ts'
import { invalidToken } from '../errors.ts'
import { MiB } from '../limits/units.ts'
import { type Endpoint, endpoint, type SocketEndpoint } from './endpoint.ts'
import { createMetrics } from './metrics.ts'
import { json } from './replies/reply.ts'
import type { UnreadResponsesOptions } from './replies/unread-responses.ts'
import { parseBearer } from './security/authorization.ts'
import { createCors } from './security/cors.ts'
import { createRateLimiter, type RateLimits } from './security/rate-limit.ts'
import { openServer, type Served, type Server } from './server.ts'
import { Sockets, type SocketsDeps } from './sockets/sockets.ts'

/** An endpoint with nothing but what a test says about it. */
export const tiny = (declaration: Partial<Endpoint> & Pick<Endpoint, 'name' | 'paths'>): Endpoint =>
  endpoint({
    method: 'GET',
    tag: 'Test',
    summary: declaration.name,
    credentials: 'public',
    rateLimit: null,
    replies: { 200: { description: 'Fine' } },
    handle: ({ params }) => json({ name: declaration.name, params }),
    ...declaration,
  })

export const ada = userCaller('ada')
const keys = [
  { name: 'root', key: 'root-key', scopes: ['*'] },
  { name: 'reader', key: 'reader-key', scopes: ['db:table:*:read'] },
  { name: 'old', key: 'old-key', scopes: ['*'], expiresAtMs: 0 },
  { name: 'elsewhere', key: 'elsewhere-key', scopes: ['*'], ipCidr: ['10.0.0.0/8'] },
]
const few = { requests: 3, windowMs: 60_000 }
const fewOfAll: RateLimits = {
  db: few,
  storage: few,
  auth: few,
  signin: few,
  signup: few,
  mail: few,
  push: few,
  events: few,
  functions: few,
  instances: few,
  global: few,
}

/** Authentication of sockets, by default with the token `ada-token`, and their limits. */
export type SocketProofs = Partial<Pick<SocketsDeps, 'authenticate' | 'renew' | 'bounds'>>

interface Options extends SocketProofs {
  readonly socketEndpoints?: readonly SocketEndpoint[]
  readonly cors?: Parameters<typeof createCors>[0]
  readonly trustProxy?: string
  readonly drainTimeoutMs?: number
  readonly bodyBytesMax?: number
  readonly unread?: UnreadResponsesOptions
  readonly idleSeconds?: number
  readonly admission?: AdmissionControl
}

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** A server on a free port, drained after the test. */
export function serve(endpoints: readonly Endpoint[], options: Options = {}) {
  const clock = manualClock()
  const lines: string[] = []
  const log = createLog({ format: 'json', clock, write: (text) => lines.push(text) })
  const metrics = createMetrics()
  const authenticate = async (token: string): Promise<UserCaller> => {
    if (token === 'ada-token') return ada
    throw invalidToken()
  }
  const sockets = new Sockets({
    clock,
    log,
    authenticate: options.authenticate ?? authenticate,
    renew: options.renew ?? (async (caller) => caller),
    ...(options.bounds ? { bounds: options.bounds } : {}),
  })
  const served: Served = {
    endpoints,
    socketEndpoints: options.socketEndpoints ?? [],
    parts: {
      log,
      metrics,
      admission: options.admission ?? new AdmissionControl(),
      limiter: createRateLimiter(createMemoryCluster({ clock }), () => fewOfAll),
      serviceKeys: createServiceKeys(keys, clock),
      authenticate: (authorization) => authenticate(parseBearer(authorization)),
      sockets,
      cors: createCors(options.cors ?? { mode: 'release', origins: [] }),
      trustProxy: parseTrustProxy(options.trustProxy ?? ''),
      audit: { record: async (_, work) => work() },
      dashboard: {
        findSession: async () => null,
        checkSession: async () => null,
        publicUrl: null,
        trustProxy: { kind: 'none' },
        now: clock.now,
      },
    },
  }
  const { drainTimeoutMs = 5000, bodyBytesMax = 1024 * 1024 * MiB, unread, idleSeconds } = options
  const bounds = { drainTimeoutMs, bodyBytesMax, ...(unread && { unread }), ...(idleSeconds && { idleSeconds }) }
  const server: Server = openServer({ host: '127.0.0.1', port: 0, ...bounds, ...served })
  open.push(async () => {
    metrics.close()
    await server.drain()
    sockets.stop()
  })
  const logged = (): Record<string, unknown>[] => {
    log.flush()
    return lines
      .join('')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  const request = (path: string, init?: RequestInit): Promise<Response> => fetch(server.url + path, init)
  return { server, served, clock, metrics, sockets, logged, request }
}

/** A raw connection. */
export function connectRaw(server: Server) {
  const socket: Socket = connect(server.port, '127.0.0.1')
  let received = ''
  const closed = Promise.withResolvers<string>()
  const waiting: { text: string; resolve: () => void }[] = []
  socket.on('data', (data) => {
    received += data.toString()
    for (const wait of waiting) if (received.includes(wait.text)) wait.resolve()
  })
  socket.on('error', () => {})
  socket.on('close', () => closed.resolve(received))
  return {
    socket,
    write: (text: string) => socket.write(text),
    /** Resolves when the text has arrived. */
    until: (text: string) =>
      new Promise<void>((resolve) => {
        waiting.push({ text, resolve })
        if (received.includes(text)) resolve()
      }),
    /** Everything received, once the server has closed the connection. */
    closed: closed.promise,
  }
}

/** The status and message of an error response. */
export const refusal = async (response: Response): Promise<unknown[]> => {
  const body = (await response.json()) as { code: number; message: string; slug: string }
  expect(body.code).toBe(response.status)
  return [response.status, body.message]
}

/** An endpoint that returns its caller and requires the credentials that it is named after. */
export const whoami = (credentials: Endpoint['credentials'], extra: Partial<Endpoint> = {}) =>
  tiny({ name: credentials, paths: [`/${credentials}`], credentials, handle: ({ caller }) => json(caller), ...extra })
