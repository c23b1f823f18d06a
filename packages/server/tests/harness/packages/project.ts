/** A project folder outside of the repository, in which npm installs packages and runs scripts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environment } from '../processes/command-line.ts'
import { followText } from '../processes/follow-text.ts'
import { runProgram } from './tarballs.ts'

type Env = Readonly<Record<string, string>>

export interface Started {
  readonly out: ReturnType<typeof followText>
  readonly error: ReturnType<typeof followText>
  /** Writes to the program's input. */
  write(text: string): void
  /** Ends the input of the program and resolves with its exit code. */
  finish(): Promise<number>
}

export interface Project {
  readonly folder: string
  /** Runs a command to its end and returns its output; throws an Error with its output if it fails. */
  run(command: readonly string[], env?: Env): string
  start(command: readonly string[], env?: Env): Started
  /** Ends what still runs, with everything that it has started, and removes the folder. */
  remove(): Promise<void>
}

/**
 * npm of the machine, without the variables of the npm that runs the tests. Programs print no colors, which some do
 * without a terminal where `CI` is set: tests look for their text.
 */
const npmFree = {
  ...Object.fromEntries(Object.entries(environment).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name))),
  NO_COLOR: '1',
}

/** Ends a process and those that it has started. It may have ended already. */
function endGroup({ pid, exitCode }: Bun.Subprocess): void {
  try {
    if (exitCode === null) process.kill(-pid, 'SIGTERM')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

export function openProject(): Project {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-project-'))
  // Without it npm installs into a parent folder that has one.
  writeFileSync(join(folder, 'package.json'), '{}')
  const running = new Set<Bun.Subprocess>()
  return {
    folder,
    run: (command, env = {}) => runProgram(command, { cwd: folder, env: { ...npmFree, ...env } }),
    start(command, env = {}) {
      const child = Bun.spawn([...command], {
        cwd: folder,
        env: { ...npmFree, ...env },
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'pipe',
        // A process group, because npm does not pass signals on.
        detached: true,
      })
      running.add(child)
      return {
        out: followText(child.stdout),
        error: followText(child.stderr),
        write(text) {
          child.stdin.write(text)
          child.stdin.flush()
        },
        async finish() {
          child.stdin.end()
          return await child.exited
        },
      }
    },
    async remove() {
      for (const child of running) endGroup(child)
      await Promise.all([...running].map(({ exited }) => exited))
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
}

/** The address in the ready line of a server, once it is printed. */
export async function readyUrl({ out }: Started): Promise<string> {
  await out.until('Plinth is ready at ')
  await out.until('\n')
  return /Plinth is ready at (\S+)$/m.exec(out.text())?.[1] ?? ''
}
