/** Plinth as several processes on this machine, all serving the atlas from one PostgreSQL and one Redis. */
import { join } from 'node:path'
import { findFreePort, makePassword, type ServerProcess, startProcess } from '../../scripts/servers/private-server.ts'

const main = join(import.meta.dirname, '../../packages/server/src/main.ts')
const config = join(import.meta.dirname, '../atlas/plinth.config.ts')

/** Settings that all nodes share. */
export interface Shared {
  readonly databaseUrl: string
  readonly redisUrl: string
  /** Signs tokens, so that a token issued by one node is valid on all. */
  readonly secret: string
  readonly serviceKey: string
}

export interface Node {
  readonly name: string
  readonly port: number
  readonly url: string
  /** Starts the node again on the same port; resolves when it accepts requests. */
  start(): Promise<void>
  /** Kills the node immediately, in the middle of its work. */
  kill(): Promise<void>
  /** Lets it finish what it does. */
  stop(): Promise<void>
}

export const makeShared = (databaseUrl: string, redisUrl: string): Shared => ({
  databaseUrl,
  redisUrl,
  secret: makePassword(),
  serviceKey: makePassword(),
})

/** Starts a node; `folder` is where it keeps the little that is its own. Must be stopped. */
export async function startNode(name: string, folder: string, shared: Shared): Promise<Node> {
  const port = findFreePort()
  let running: ServerProcess | null = null
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = running
    running = null
    await ending?.end(signal)
  }
  const start = async (): Promise<void> => {
    const options = { config, data: join(folder, name), host: '127.0.0.1', port: String(port), 'log-level': 'error' }
    running = await startProcess({
      command: [
        process.execPath,
        main,
        'start',
        ...Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]),
      ],
      ready: 'Plinth is ready at',
      environment: {
        DATABASE_URL: shared.databaseUrl,
        REDIS_URL: shared.redisUrl,
        PLINTH_SECRET: shared.secret,
        PLINTH_SERVICE_KEY: shared.serviceKey,
        // Trusts `X-Forwarded-For` only from the load balancer.
        PLINTH_TRUST_PROXY: '127.0.0.1',
      },
    })
  }
  await start()
  return { name, port, url: `http://127.0.0.1:${port}`, start, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') }
}
