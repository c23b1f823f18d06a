/** Runs commands of the program as processes, in a separate folder for each test, and stops them afterwards. */
import { afterAll, afterEach, beforeEach } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

const { PLINTH_SECRET, PLINTH_SERVICE_KEY, PLINTH_DATA, PLINTH_PORT, PLINTH_HOST, ...rest } = process.env
/** The environment of this process without the variables that configure the program. */
export const environment: Env = rest

export interface CommandLine {
  /** The folder of the current test. */
  readonly folder: string
  /** Starts the program with these arguments; stopped after the test if it is still running. */
  spawn(args: readonly string[], env?: Env): Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  /** Runs the program until it exits. */
  run(
    args: readonly string[],
    env?: Env,
  ): Promise<{ readonly out: string; readonly error: string; readonly code: number }>
  /** Stops all running processes. */
  end(): Promise<void>
}

/** `endSignal` is SIGTERM for a launcher, which cannot forward SIGKILL and would orphan its server. */
export function openCommandLine(program: readonly string[], endSignal: 'SIGTERM' | 'SIGKILL'): CommandLine {
  const root = mkdtempSync(join(tmpdir(), 'plinth-command-'))
  const running = new Set<Bun.Subprocess>()
  let folder = ''

  function spawn(args: readonly string[], env: Env = {}) {
    const child = Bun.spawn([...program, ...args], {
      cwd: folder,
      env: { ...environment, ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    running.add(child)
    return child
  }

  async function end(): Promise<void> {
    for (const child of running) child.kill(endSignal)
    await Promise.all([...running].map(({ exited }) => exited))
    running.clear()
  }

  beforeEach(() => {
    folder = mkdtempSync(join(root, 'case-'))
  })
  afterEach(end)
  afterAll(() => rmSync(root, { recursive: true }))

  return {
    get folder() {
      return folder
    },
    spawn,
    async run(args, env) {
      const child = spawn(args, env)
      const [out, error, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ])
      return { out, error, code }
    },
    end,
  }
}
