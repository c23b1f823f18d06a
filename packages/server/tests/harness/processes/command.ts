/** Runs commands of the program as processes, for tests of their output and tests that kill them. */
import { join } from 'node:path'

const main = join(import.meta.dir, '../../../src/main.ts')

export type Environment = Readonly<Record<string, string>>

/** A running command and its output. */
export const startCommand = (words: readonly string[], environment: Environment = {}) =>
  Bun.spawn([process.execPath, main, ...words], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })

/** Runs a command until it exits. */
export async function runCommand(words: readonly string[], environment?: Environment) {
  const child = startCommand(words, environment)
  const [out, error, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, error, code }
}
