/**
 * A real server inside the test process, with a private data folder, a free port and the configuration of the test.
 * Owns the life cycle of the server and provides clients for its callers.
 */
import { afterAll, beforeAll, describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRecentLog } from '../../src/app/context.ts'
import type { Substitutes } from '../../src/app/substitutes.ts'
import { type App, openApp } from '../../src/app.ts'
import { type Clock, type ManualClock, systemClock } from '../../src/base/clock.ts'
import type { HashCost } from '../../src/base/crypto/argon2.ts'
import { createLog } from '../../src/base/log.ts'
import type { Mode, Settings } from '../../src/config/config.ts'
import type { Blobs } from '../../src/engines/blobs/blobs.ts'
import { openBlobs } from '../../src/engines/open.ts'
import { type Client, createClient, query } from './client.ts'
import { createTestSettings, parseTestConfig, type WrittenConfig } from './config.ts'
import { type Engine, engines, type Storage } from './engines.ts'
import { createTokenSigner, type UserClaims } from './users/tokens.ts'

export interface ServerOptions {
  readonly config: WrittenConfig
  /** Default `development`, where nothing but the limits and CORS differs. */
  readonly mode?: Mode
  readonly clock?: Clock
  readonly settings?: Partial<Settings>
  /** Default far below that of a server in use, so that users can sign up and in by the hundred. */
  readonly passwordCost?: HashCost
  readonly substitutes?: Substitutes
}

export interface TestServer {
  readonly url: string
  readonly dataFolder: string
  readonly anonymous: Client
  readonly service: Client
  /** Everything the server has logged, as JSON lines. */
  logged(): string
  /** The token of the setup link that `plinth dev` prints. */
  issueSetupToken(): Promise<string | null>
  /** Every declared endpoint, for tests that must cover all of them. */
  endpoints(): App['endpoints']
  /** Every endpoint below `/dashboard`. */
  dashboardEndpoints(): App['dashboardEndpoints']
  as(claims: UserClaims | string): Client
  /** A client with this service key. */
  withKey(key: string): Client
  token(claims: UserClaims | string): Promise<string>
  open(): Promise<void>
  close(): Promise<void>
  /** Closes and reopens the server on the same data, optionally with another configuration. */
  restart(config?: WrittenConfig): Promise<void>
  reload(config: WrittenConfig): Promise<void>
  /** Loads the code of functions again. */
  reloadFunctions(): Promise<void>
  /** Waits until no job of a function is due by the clock. */
  finishDue(): Promise<void>
  /** Runs the periodic cleanup of the server. */
  tidy(): Promise<void>
  /** The settings of the server. */
  settings(): Settings
  /** Opens the blob store of the server a second time for `run`, and closes it afterwards. */
  withBlobs<T>(run: (blobs: Blobs) => Promise<T>): Promise<T>
  /** Simulates elapsed time: advances the clock, which must be manual, and expiries measured by the engines. */
  elapse(ms: number): Promise<void>
  /**
   * Every record of these tables with their totals, to verify that a refused request changes nothing.
   */
  dump(...tables: readonly string[]): Promise<Readonly<Record<string, Dump>>>
}

export interface Dump {
  readonly total: number
  readonly items: readonly Record<string, unknown>[]
}

export const rootKey = 'root-key-for-tests-0123456789'
export const tokenSecret = 'secret-for-tests-0123456789-0123456789'

/** A server that is not open yet. */
export function createServer(options: ServerOptions, engine: Engine): TestServer {
  const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-test-'))
  const clock = options.clock ?? systemClock
  const lines: string[] = []
  const recentLog = createRecentLog()
  const log = createLog({ level: 'debug', format: 'json', recent: recentLog, write: (text) => void lines.push(text) })
  const signer = createTokenSigner(tokenSecret, clock)
  const mode = options.mode ?? 'development'
  const passwordCost = options.passwordCost ?? { memoryKiB: 64, passes: 1 }
  let config = options.config
  let app: App | null = null
  let storage: Storage | null = null
  const url = () => {
    if (!app) throw new Error('the server is not open')
    return `http://127.0.0.1:${app.port}`
  }
  const service = createClient(url, { 'x-platform-service-key': rootKey })

  const settings = (): Settings =>
    createTestSettings({
      dataFolder,
      secret: tokenSecret,
      serviceKey: rootKey,
      ...storage?.settings,
      ...options.settings,
    })
  const open = async (): Promise<void> => {
    storage ??= await engine.openStorage()
    const parsed = parseTestConfig(config, mode, rootKey)
    const { substitutes = {} } = options
    app = await openApp({ config: parsed, settings: settings(), clock, log, recentLog, passwordCost, substitutes })
  }
  const shut = async (): Promise<void> => {
    const closing = app
    app = null
    await closing?.close()
  }

  return {
    get url() {
      return url()
    },
    dataFolder,
    logged() {
      log.flush()
      return lines.join('')
    },
    service,
    async issueSetupToken() {
      if (!app) throw new Error('the server is not open')
      return app.issueSetupToken()
    },
    endpoints: () => app?.endpoints ?? [],
    dashboardEndpoints: () => app?.dashboardEndpoints ?? [],
    anonymous: createClient(url),
    as: (claims) => createUserClient(url, () => signer(claims)),
    withKey: (key) => createClient(url, { 'x-platform-service-key': key }),
    token: signer,
    open,
    async close() {
      await shut()
      await storage?.remove()
      storage = null
      rmSync(dataFolder, { recursive: true, force: true })
    },
    async restart(next) {
      await shut()
      config = next ?? config
      await open()
    },
    async reload(next) {
      config = next
      await app?.reload(parseTestConfig(next, mode, rootKey))
    },
    reloadFunctions: async () => app?.reloadFunctions(),
    finishDue: async () => app?.finishDue(),
    tidy: async () => app?.tidy(),
    settings,
    async withBlobs(run) {
      const blobs = await openBlobs({ ...settings(), log })
      try {
        return await run(blobs)
      } finally {
        await blobs.close()
      }
    },
    async elapse(ms) {
      const manual = clock as ManualClock
      manual.advance(ms)
      await storage?.elapse(ms)
    },
    dump: async (...tables) =>
      Object.fromEntries(await Promise.all(tables.map(async (table) => [table, await dumpTable(service, table)]))),
  }
}

/** Signs a new token for each request, so that a manual clock can advance between requests. */
function createUserClient(url: () => string, sign: () => Promise<string>): Client {
  const signed = async () => createClient(url, { authorization: `Bearer ${await sign()}` })
  return {
    request: async (...call) => (await signed()).request(...call),
    get: async (...call) => (await signed()).get(...call),
    post: async (...call) => (await signed()).post(...call),
    patch: async (...call) => (await signed()).patch(...call),
    delete: async (...call) => (await signed()).delete(...call),
  }
}

async function dumpTable(service: Client, table: string): Promise<Dump> {
  const items: Record<string, unknown>[] = []
  for (let page = 1; ; page++) {
    const { status, body, text } = await service.get(table + query({ page, perPage: 1000 }))
    if (status !== 200) throw new Error(`cannot dump ${table}: ${status} ${text}`)
    items.push(...body.items)
    if (body.items.length < 1000) return { total: body.total, items }
  }
}

/** Opens a server at once, on the first engine by default. Must be closed. */
export async function startServer(options: ServerOptions, engine = engines[0] as Engine): Promise<TestServer> {
  const server = createServer(options, engine)
  try {
    await server.open()
  } catch (error) {
    await server.close()
    throw error
  }
  return server
}

/**
 * Runs the tests of `body` on every engine, or on those of `some`, each with a server of its own that is opened before
 * the first of them.
 */
export function describeServer(
  title: string,
  options: ServerOptions,
  body: (server: TestServer) => void,
  some = engines,
): void {
  for (const engine of some)
    describe(`${title} on ${engine.name}`, () => {
      const server = createServer(options, engine)
      beforeAll(() => server.open())
      afterAll(() => server.close())
      body(server)
    })
}
