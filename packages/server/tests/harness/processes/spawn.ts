/** Runs a server as a process, for tests that kill it. The same data folder can be served again. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemClock } from '../../../src/base/clock.ts'
import type { Settings } from '../../../src/config/config.ts'
import { type Client, createClient } from '../client.ts'
import { type Engine, engines } from '../engines.ts'
import { rootKey, tokenSecret } from '../server.ts'
import { createTokenSigner } from '../users/tokens.ts'

const ownMain = join(import.meta.dir, '../../../src/main.ts')

export interface SpawnedServer {
  readonly url: string
  /** The id of the running process. */
  readonly pid: number
  readonly dataFolder: string
  /** Settings with which another server can use the same storage. */
  readonly settings: Partial<Settings>
  readonly anonymous: Client
  readonly service: Client
  token(id: string): Promise<string>
  /** Kills the process with SIGKILL; resolves when it has ended. */
  kill(): Promise<void>
  /** Stops the process gracefully; resolves with its exit code. */
  terminate(): Promise<number>
  /** Suspends the process until it is resumed. */
  pause(): void
  resume(): void
  /** Serves the same folder again, optionally with further command-line options. */
  start(more?: readonly string[]): Promise<void>
  /** Kills the process and removes the folder. */
  remove(): Promise<void>
}

export interface SpawnOptions {
  /** The path of a module that the process loads first. */
  readonly preload?: string
  /** The limit of file handles of the process. */
  readonly handles?: number
  /** The path of the program, by default that of this repository. */
  readonly main?: string
  /** Further files of the folder, by their paths in it. */
  readonly files?: Readonly<Record<string, string>>
}

/**
 * Serves a configuration given as the text of its file in release mode, on the first engine by default;
 * resolves when it is ready.
 */
export async function spawnServer(
  configText: string,
  engine = engines[0] as Engine,
  { preload, handles, main = ownMain, files = {} }: SpawnOptions = {},
): Promise<SpawnedServer> {
  const storage = await engine.openStorage()
  const { databaseUrl, redisUrl, redisPrefix, s3 } = storage.settings
  const folder = mkdtempSync(join(tmpdir(), 'plinth-spawn-'))
  const dataFolder = join(folder, 'data')
  writeFileSync(join(folder, 'plinth.config.ts'), configText)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  let child: Bun.Subprocess<'ignore', 'pipe', 'ignore'> | null = null
  let url = ''

  const start = async (more: readonly string[] = []): Promise<void> => {
    child = Bun.spawn(
      [
        ...(handles === undefined ? [] : ['sh', '-c', `ulimit -n ${handles}; exec "$@"`, 'sh']),
        process.execPath,
        ...(preload === undefined ? [] : ['--preload', preload]),
        main,
        'start',
        '--port',
        '0',
        '--host',
        '127.0.0.1',
        '--data',
        dataFolder,
        '--log-level',
        'error',
        ...more,
      ],
      {
        cwd: folder,
        env: {
          PATH: process.env.PATH,
          PLINTH_SECRET: tokenSecret,
          PLINTH_SERVICE_KEY: rootKey,
          DATABASE_URL: databaseUrl ?? undefined,
          REDIS_URL: redisUrl ?? undefined,
          REDIS_PREFIX: redisPrefix,
          S3_ENDPOINT: s3?.endpoint,
          S3_BUCKET: s3?.bucket,
          S3_ACCESS_KEY_ID: s3?.accessKeyId,
          S3_SECRET_ACCESS_KEY: s3?.secretAccessKey,
        },
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'ignore',
      },
    )
    url = await readyUrl(child.stdout)
  }
  const end = async (signal: NodeJS.Signals): Promise<number> => {
    const ending = child
    ending?.kill(signal)
    return (await ending?.exited) ?? 0
  }

  await start()
  return {
    get url() {
      return url
    },
    get pid() {
      return child?.pid ?? 0
    },
    dataFolder,
    settings: { ...storage.settings, dataFolder },
    anonymous: createClient(() => url),
    service: createClient(() => url, { 'x-platform-service-key': rootKey }),
    token: createTokenSigner(tokenSecret, systemClock),
    kill: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
    pause: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
    start,
    async remove() {
      await end('SIGKILL')
      await storage.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Reads the address from the ready line. Later output is discarded, so that the process never blocks on a full pipe.
 */
async function readyUrl(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stdout.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`the server ended before it was ready: ${text}`)
    text += decoder.decode(value, { stream: true })
    const url = /^Plinth is ready at (\S+)\n/m.exec(text)?.[1]
    if (url === undefined) continue
    void (async () => {
      while (!(await reader.read()).done);
    })()
    return url
  }
}
