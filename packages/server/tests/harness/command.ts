/** Commands of the program as processes, for tests that look at what they print, or end them the hard way. */
import { join } from 'node:path'

const main = join(import.meta.dir, '../../src/main.ts')

export type Environment = Readonly<Record<string, string>>

/** A command that runs, and what it prints. */
export const startCommand = (words: readonly string[], environment: Environment = {}) =>
  Bun.spawn([process.execPath, main, ...words], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })

/** Runs a command to its end. */
export async function runCommand(words: readonly string[], environment?: Environment) {
  const child = startCommand(words, environment)
  const [out, error, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, error, code }
}
