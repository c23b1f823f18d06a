/**
 * Starts and stops the processes of a run: the server under test, its baseline, the load generator. Each is pinned to
 * its core.
 */

import type { LoadJob, LoadResult } from '../load/load.ts'
import type { JobAnswer } from './jobs.ts'
import { loadCore, pinned, serverCore } from './proc.ts'

export interface ServerProcess {
  readonly pid: number
  readonly url: string
  readonly port: number
  /** From the start of the process to its ready line. */
  readonly startMs: number
  stop(): Promise<void>
}

export interface BaselineProcess {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

/** A worker process that runs jobs one after the other. */
export interface JobProcess<Job, Result> {
  /** Rejects with the error of the job. */
  run(job: Job): Promise<Result>
  stop(): Promise<void>
}

export type LoadProcess = JobProcess<LoadJob, LoadResult>

/** Credentials of the temporary server. */
export const serviceKey = 'bench-service-key-of-a-temporary-server'
export const tokenSecret = 'bench-secret-of-a-temporary-server-0123456789'

const repository = new URL('../..', import.meta.url).pathname
const readyPattern = /^Plinth is ready at (\S+)\n/m

/** Settings shared by several nodes; without them a server is a single node on SQLite, whatever the environment. */
export interface Shared {
  readonly databaseUrl: string
  readonly redisUrl: string
}

export interface ServerOptions {
  readonly program?: string
  readonly command?: 'start' | 'dev'
  /** Null for all cores, which is the default of nodes that share databases: there are more processes than cores. */
  readonly core?: number | null
}

/** Starts the server on a data folder in release mode. */
export async function startServer(
  folder: string,
  shared: Shared | null = null,
  config = 'bench/plinth.config.ts',
  options: ServerOptions = {},
): Promise<ServerProcess> {
  const { program = 'packages/server/src/main.ts', command = 'start' } = options
  const { core = shared === null ? serverCore : null } = options
  const startedAt = performance.now()
  const child = spawnPinned(
    core,
    [program, command, '--config', config, '--data', folder, '--host', '127.0.0.1', '--port', '0'],
    {
      PLINTH_SERVICE_KEY: serviceKey,
      PLINTH_SECRET: tokenSecret,
      DATABASE_URL: shared?.databaseUrl ?? '',
      REDIS_URL: shared?.redisUrl ?? '',
    },
  )
  const output = child.stdout.getReader()
  const ready = await findInOutput(output, readyPattern)
  if (ready === null) throw new Error(`The server did not start: exit code ${await child.exited}`)
  const startMs = performance.now() - startedAt
  const url = ready[1] as string
  void drain(output)
  return { pid: child.pid, url, port: Number(new URL(url).port), startMs, stop: () => end(child) }
}

/** Starts the baseline on a copy of the same folder. */
export const startBaseline = (folder: string, rows: number): Promise<BaselineProcess> =>
  startListener(['bench/baseline.ts', folder, String(rows)])

/** Starts the baseline of the users run. */
export const startUsersBaseline = (folder: string): Promise<BaselineProcess> =>
  startListener(['bench/users/baseline.ts', folder])

/** Starts the process that copies files, the baseline of uploads. */
export const startStorageBaseline = (folder: string): Promise<BaselineProcess> =>
  startListener(['bench/storage/baseline.ts', folder])

/** Starts a program that prints its port when it listens: on the server's core, or (null) on all. */
export async function startListener(
  args: readonly string[],
  core: number | null = serverCore,
): Promise<BaselineProcess> {
  const child = spawnPinned(core, args)
  const port = await findInOutput(child.stdout.getReader(), /^(\d+)\n/)
  if (port === null) throw new Error(`The baseline did not start: exit code ${await child.exited}`)
  return { pid: child.pid, port: Number(port[1]), stop: () => end(child) }
}

export const startLoad = (core: number | null = loadCore): LoadProcess => startJobs('bench/load/load.ts', core)

/** Starts a worker program (`serveJobs`). */
export function startJobs<Job, Result>(program: string, core: number | null): JobProcess<Job, Result> {
  const child = spawnPinned(core, [program])
  const lines = readLines(child.stdout)
  return {
    async run(job) {
      child.stdin.write(`${JSON.stringify(job)}\n`)
      await child.stdin.flush()
      const { value, done } = await lines.next()
      if (done) throw new Error(`${program} has ended`)
      const answer = JSON.parse(value) as JobAnswer<Result>
      if ('error' in answer) throw new Error(answer.error)
      return answer.result
    },
    stop: () => end(child),
  }
}

type Child = Bun.Subprocess<'pipe', 'pipe', 'inherit'>

function spawnPinned(core: number | null, args: readonly string[], env: Record<string, string> = {}): Child {
  return Bun.spawn([...pinned(core), process.execPath, ...args], {
    cwd: repository,
    env: { ...process.env, ...env },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
}

async function end(child: Child): Promise<void> {
  child.kill('SIGTERM')
  await child.exited
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

type Output = ReadableStreamDefaultReader<Uint8Array>

/** Reads until the pattern matches; null when the output ends first. */
async function findInOutput(output: Output, pattern: RegExp): Promise<RegExpExecArray | null> {
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { value, done } = await output.read()
    if (done) return null
    text += decoder.decode(value, { stream: true })
    const found = pattern.exec(text)
    if (found) return found
  }
}

/** Discards the log: a full pipe would block the server. */
async function drain(output: Output): Promise<void> {
  while (!(await output.read()).done);
}
