/**
 * Private servers for a run of the tests, a benchmark or an example: on a free port, with a random password and a
 * temporary folder, removed at the end of the run. `postgres.ts`, `redis.ts` and others configure them.
 */
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface PrivateServer extends ServerLocation {
  /** With its password; the same after every start. */
  readonly url: string
  /** Starts again; resolves when it takes connections. */
  start(): Promise<void>
  /** Ends it in peace. */
  stop(): Promise<void>
  /** Ends it as a power cut would. */
  crash(): Promise<void>
  /** Holds it in its tracks, connections open and nothing answered, until the function it gives back is called. */
  freeze(): () => void
  /** Stops it and removes its folder. */
  remove(): Promise<void>
}

/** Who may run a server: PostgreSQL refuses root. */
export interface User {
  readonly uid: number
  readonly gid: number
}

export interface ProcessOptions {
  readonly command: readonly string[]
  /** Printed once the program takes connections; without it, a program is taken to be ready at once. */
  readonly ready?: string
  readonly input?: string
  /** Added to an environment without anything of the developer's own. */
  readonly environment?: Readonly<Record<string, string>>
  readonly user?: User | null
}

/** Kept of what a program prints, to be shown when it fails. */
const outputCharsMax = 4000

/** A port that was free a moment ago. */
export function findFreePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

export const makePassword = (): string => crypto.randomUUID().replaceAll('-', '')

/** A new folder below one that every user can enter. */
function makeServerFolder(name: string, user: User | null): string {
  const folder = mkdtempSync(join(user ? '/tmp' : tmpdir(), `plinth-${name}-`))
  if (user) chownSync(folder, user.uid, user.gid)
  return folder
}

/** Runs a command to its end; throws an Error with what it printed when it fails. */
export function runToEnd(command: readonly string[], user: User | null): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync(asUser(command, user), {
    cwd: '/',
    stdin: 'ignore',
    env: plainEnv(),
  })
  if (exitCode !== 0) throw new Error(`${command[0]} failed:\n${stdout}${stderr}`)
}

/** The child ends when we do, even if we are killed, where the system knows how. */
function asUser(command: readonly string[], user: User | null): string[] {
  const setpriv = process.platform === 'linux' ? Bun.which('setpriv') : null
  if (setpriv === null) return [...command]
  const identity = user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : []
  return [setpriv, ...identity, '--pdeathsig=INT', '--', ...command]
}

/** Nothing of the developer's own settings, such as PGHOST. */
const plainEnv = (): Record<string, string> => ({ PATH: process.env.PATH ?? '', LC_ALL: 'C' })

export interface ServerProcess {
  readonly pid: number
  signal(signal: NodeJS.Signals): void
  /** Sends the signal and resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>
}

/** Starts a program; resolves when it says that it is ready, rejects with what it printed when it ends before. */
export async function startProcess(options: ProcessOptions): Promise<ServerProcess> {
  const { command, ready = '', input = '', environment = {}, user = null } = options
  const child = Bun.spawn(asUser(command, user), {
    cwd: '/',
    env: { ...plainEnv(), ...environment },
    stdin: new Blob([input]),
    stdout: 'pipe',
    stderr: 'pipe',
    // Ctrl-C at a terminal reaches every process of the group, and it is for us to say when servers end.
    detached: true,
  })
  let output = ''
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  if (ready === '') resolve()
  const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      output = (output + decoder.decode(chunk, { stream: true })).slice(-outputCharsMax)
      if (output.includes(ready)) resolve()
    }
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
  child.exited.then(async (code) => {
    await reading
    reject(new Error(`${command[0]} ended with ${code}:\n${output}`))
  })
  await promise
  return {
    pid: child.pid,
    signal: (signal) => child.kill(signal),
    async end(signal) {
      child.kill(signal)
      await child.exited
    },
  }
}

/** A server may be many processes: PostgreSQL has one for each connection. */
function childrenOf(pid: number): number[] {
  const listed = Bun.spawnSync(['ps', '-A', '-o', 'pid=,ppid=']).stdout.toString()
  const pairs = listed.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  return pairs.filter(([, parent]) => parent === pid).map(([child]) => child as number)
}

/** Bounds the waiting for a program that is going to be there in a moment. */
const connectAttemptsMax = 1000

async function waitForPort(port: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
      return void socket.end()
    } catch (error) {
      if (attempt === connectAttemptsMax) throw error
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}

/** The folder and the port of a server, not shared with any other process. */
export interface ServerLocation {
  readonly folder: string
  readonly port: number
}

/** How a server is started. */
export interface Recipe {
  readonly url: string
  readonly process: ProcessOptions
  /** For a program that reports that it is ready before it accepts connections. */
  readonly isReadyEarly?: boolean
  /** Signals for a graceful stop and a crash; by default SIGTERM and SIGKILL. */
  readonly stopSignal?: NodeJS.Signals
  readonly crashSignal?: NodeJS.Signals
}

/**
 * Starts a server as `prepare` describes, in a folder named after `name` and owned by `user`. Must be removed.
 */
export async function openPrivateServer(
  name: string,
  prepare: (location: ServerLocation) => Recipe,
  user: User | null = null,
): Promise<PrivateServer> {
  const location = { folder: makeServerFolder(name, user), port: findFreePort() }
  let running: ServerProcess | null = null
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = running
    running = null
    await ending?.end(signal)
  }
  const removeFolder = (): void => rmSync(location.folder, { recursive: true, force: true })
  try {
    const recipe = prepare(location)
    const { url, isReadyEarly = false, stopSignal = 'SIGTERM', crashSignal = 'SIGKILL' } = recipe
    const start = async (): Promise<void> => {
      running ??= await startProcess({ ...recipe.process, user })
      if (isReadyEarly) await waitForPort(location.port)
    }
    await start()
    return {
      ...location,
      url,
      start,
      stop: () => end(stopSignal),
      crash: () => end(crashSignal),
      freeze() {
        const frozen = running
        const pids = frozen === null ? [] : [frozen.pid, ...childrenOf(frozen.pid)]
        for (const pid of pids) process.kill(pid, 'SIGSTOP')
        return () => {
          // In the other order, so that no parent finds a child stopped.
          for (const pid of pids.reverse()) process.kill(pid, 'SIGCONT')
        }
      },
      async remove() {
        await end(stopSignal)
        removeFolder()
      },
    }
  } catch (error) {
    await end('SIGKILL')
    removeFolder()
    throw error
  }
}
