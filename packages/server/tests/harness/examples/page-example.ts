/**
 * Starts an example with a page as its README describes, with separate data, and runs the README twice. The tests of
 * the page use Chromium if it is installed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../../../../scripts/servers/private-server.ts'
import { runDocument } from './documents.ts'

export const repository = join(import.meta.dir, '../../../../..')

export interface PageExample {
  /** Where the API listens. */
  readonly port: number
  /** A variable of the environment file of the example, such as `PAGE`; `''` if it is not set. */
  demo(name: string): string
  /** Kills the example; resolves when it has ended. */
  kill(): Promise<void>
  /** Serves the same data on the same ports again. */
  start(): Promise<void>
}

/**
 * Serves the example in this folder of `examples/` for all tests of the file, and tests its README. `envOf` returns the
 * environment beside `PATH`, at each start.
 */
export function describePageExample(
  name: string,
  envOf: () => Readonly<Record<string, string>> = () => ({}),
): PageExample {
  const folder = makeWorkFolder(name)
  const data = join(folder, 'examples', name, 'data')
  const [port, pagePort] = [findFreePort(), findFreePort()]
  let server: Bun.Subprocess<'ignore', 'pipe', 'inherit'>

  async function start(): Promise<void> {
    const options = ['--port', String(port), '--page-port', String(pagePort), '--data', data]
    server = Bun.spawn([process.execPath, `examples/${name}/start.ts`, ...options], {
      cwd: repository,
      env: { PATH: Bun.env.PATH ?? '', HOME: folder, ...envOf() },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    let output = ''
    for await (const chunk of server.stdout.pipeThrough(new TextDecoderStream())) {
      output += chunk
      if (output.includes('Ctrl-C')) return
    }
    throw new Error(`the example did not start:\n${output}`)
  }

  beforeAll(start)
  afterAll(async () => {
    server.kill('SIGTERM')
    expect(await server.exited).toBe(0)
    rmSync(folder, { recursive: true, force: true })
  })

  describe('the README', () => {
    for (const run of ['as written', 'a second time'])
      test(`works ${run}`, () => runDocument(repository, `examples/${name}/README.md`, folder))
  })

  return {
    port,
    demo: (variable) =>
      new RegExp(`^export ${variable}='(.*)'$`, 'm').exec(readFileSync(join(data, 'demo.env'), 'utf8'))?.[1] ?? '',
    async kill() {
      server.kill('SIGKILL')
      await server.exited
    },
    start,
  }
}

/** A folder that mirrors the repository, except for the data of the example. */
function makeWorkFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `plinth-${name}-`))
  mkdirSync(join(folder, 'examples', name), { recursive: true })
  const link = (from: string, left: string): void => {
    for (const entry of readdirSync(join(repository, from)))
      if (entry !== left) symlinkSync(join(repository, from, entry), join(folder, from, entry))
  }
  link('.', 'examples')
  link('examples', name)
  link(`examples/${name}`, 'data')
  return folder
}
