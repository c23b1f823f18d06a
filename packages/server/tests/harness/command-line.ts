/** Commands as people and programs run them: processes in a folder of their own for each test, none left behind. */
import { afterAll, afterEach, beforeEach } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

const { PLINTH_SECRET, PLINTH_SERVICE_KEY, PLINTH_DATA, PLINTH_PORT, PLINTH_HOST, ...rest } = process.env
/** The environment of this process without the variables that configure the program. */
export const environment: Env = rest

export interface CommandLine {
  /** Of the test that runs. */
  readonly folder: string
  /** Starts the program with these arguments; what still runs when the test is over is ended. */
  spawn(args: readonly string[], env?: Env): Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  /** Runs it to its end. */
  run(
    args: readonly string[],
    env?: Env,
  ): Promise<{ readonly out: string; readonly error: string; readonly code: number }>
  /** Ends what still runs. */
  end(): Promise<void>
}

/** `endSignal` is SIGTERM for a launcher, which could not pass SIGKILL on and would leave its server behind. */
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
