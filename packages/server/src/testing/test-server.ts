/** The public module `plinth/testing`: the real server on a folder in memory, with a clock that the test moves. */
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'plinth-client/all'
import { type App, openApp } from '../app.ts'
import { type ManualClock, manualClock } from '../base/clock.ts'
import { createLog } from '../base/log.ts'
import { parseDuration } from '../base/text/duration.ts'
import type { Settings } from '../config/config.ts'
import { readEnvironment } from '../config/load.ts'
import { openOutside } from './outside.ts'
import { loadProject } from './project.ts'
import type { TestServer, TestServerOptions } from './types.ts'
import { createTestUsers } from './users.ts'

export type {
  CapturedMail,
  CapturedPush,
  CapturedWebhook,
  Reply,
  TestServer,
  TestServerOptions,
  TestUser,
} from './types.ts'

const serviceKey = 'service-key-of-the-test-server'
const secret = 'secret-of-the-test-server-0123456789'
/** Far below that of a server in use. */
const passwordCost = { memoryKiB: 64, passes: 1 }

/** A folder in memory, where the system has one. */
function makeDataFolder(): string {
  const memory = '/dev/shm'
  let parent = tmpdir()
  try {
    accessSync(memory, constants.W_OK)
    parent = memory
  } catch {
    // Linux only.
  }
  return mkdtempSync(join(parent, 'plinth-test-'))
}

const createSettings = (dataFolder: string, own: Pick<Settings, 'projectFolder' | 'environment'>): Settings => ({
  ...own,
  dataFolder,
  backupFolder: null,
  acceptsLoss: false,
  host: '127.0.0.1',
  port: 0,
  secret,
  serviceKey,
  trustProxy: { kind: 'none' },
  publicUrl: null,
  logLevel: 'warn',
  databaseUrl: null,
  redisUrl: null,
  redisPrefix: 'plinth:',
  s3: null,
})

/** Loads the project of the current folder unless options say otherwise. Throws `ConfigError`. Must be closed. */
export async function testServer<Config = unknown, Functions = unknown>(
  options: TestServerOptions = {},
): Promise<TestServer<Config, Functions>> {
  const { config, folder } = await loadProject(options, serviceKey)
  const clock = manualClock((options.now ?? new Date()).getTime())
  const write = options.log ?? ((line: string) => void process.stderr.write(line))
  const log = createLog({ level: 'warn', format: 'pretty', clock, write })
  await using opening = new AsyncDisposableStack()
  const dataFolder = makeDataFolder()
  opening.defer(() => rmSync(dataFolder, { recursive: true, force: true }))
  const outside = openOutside()
  opening.defer(() => outside.close())
  const environment = { ...readEnvironment(), ...options.secrets }
  const settings = createSettings(dataFolder, { projectFolder: folder, environment })
  const { substitutes } = outside
  const app = await openApp({ config, settings, clock, log, passwordCost, substitutes })
  opening.defer(() => app.close())
  const { url } = app
  const client = createClient<Config, Functions>(url, { serviceKey })
  opening.defer(() => client.close())
  const users = createTestUsers<Config, Functions>({
    url,
    secret,
    service: client,
    clock,
    claimsForToken: (user) => app.claimsForToken(user),
  })
  opening.defer(() => users.close())
  const opened = opening.move()
  return {
    url,
    client,
    as: users.as,
    now: () => new Date(clock.now()),
    advance: async (by) => advance(app, clock, parseBy(by)),
    settled: () => app.finishDue(),
    mail: outside.mail,
    pushes: outside.pushes,
    webhooks: outside.webhooks,
    fetch: { on: outside.on },
    close: () => opened.disposeAsync(),
  }
}

function parseBy(by: string): number {
  try {
    return parseDuration(by)
  } catch (error) {
    throw new RangeError(`advance(${JSON.stringify(by)}): ${(error as Error).message}`)
  }
}

/** From due time to due time, so that each job sees the time at which it would have run. */
async function advance(app: App, clock: ManualClock, byMs: number): Promise<void> {
  const untilMs = clock.now() + byMs
  await app.finishDue()
  for (;;) {
    const nextMs = await app.nextDueMs()
    if (nextMs === null || nextMs > untilMs) break
    clock.set(Math.min(Math.max(nextMs, clock.now() + 1), untilMs))
    await app.finishDue()
    if (clock.now() === untilMs) return
  }
  clock.set(untilMs)
  await app.finishDue()
}
