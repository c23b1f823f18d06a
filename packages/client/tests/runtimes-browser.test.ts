/** The same program on every feature, in each runtime that the client supports, with the same result. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { EdgeVM } from '@edge-runtime/vm'
import { describeInBrowser, openChromium } from '../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../server/tests/harness/server.ts'
import { servePage } from './harness/page.ts'
import { run } from './harness/runtime-program.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
interface CounterRoom {
  readonly shared: { count: number }
}
const configFor = (origin: string) => ({
  databases: {
    shared: { tables: { items: { schema: { text: { type: 'string' }, n: { type: 'number' } }, access: open } } },
  },
  storage: { buckets: { box: { access: { read: true, write: true, delete: true } } } },
  rooms: {
    counter: {
      access: { join: true },
      onCreate: (room: CounterRoom) => Object.assign(room.shared, { count: 0 }),
      actions: { add: (room: CounterRoom) => ++room.shared.count },
    },
  },
  cors: { origins: [origin] },
})

const expected = JSON.stringify([
  ['session', true, true],
  ['records', [{ text: 'one', n: 2 }], 1],
  ['error', true],
  ['live', 0],
  ['changed', 3],
  ['room', [1, 2], 'joined'],
  ['files', 'hello', 6 * 1024 * 1024],
  ['size', 6 * 1024 * 1024],
  ['signed out', null],
])

describe('runtimes', () => {
  const page = servePage()
  const folder = mkdtempSync(join(tmpdir(), 'plinth-runtimes-'))
  let server: TestServer
  let bundle = ''
  beforeAll(async () => {
    server = await startServer({ config: configFor(page.url) })
    const { outputs } = await Bun.build({
      entrypoints: [join(import.meta.dir, 'harness/runtime-program.ts')],
      target: 'browser',
      format: 'esm',
    })
    bundle = await (outputs[0] as Blob).text()
  })
  afterAll(async () => {
    page.stop()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('Bun', async () => {
    expect(await run(server.url)).toBe(expected)
  })

  test('Node.js, with the WebSocket of `ws` where it has none', async () => {
    const program = join(folder, 'program.mjs')
    writeFileSync(program, bundle)
    // Bun has a `ws` of its own, so the package is named by its path.
    const ws = pathToFileURL(join(import.meta.dir, '../../../node_modules/ws/wrapper.mjs')).href
    const script = `
      import { WebSocket as Ws } from ${JSON.stringify(ws)}
      import { run } from ${JSON.stringify(pathToFileURL(program).href)}
      process.on('unhandledRejection', (error) => { console.error(error); process.exit(1) })
      console.log(await run(${JSON.stringify(server.url)}, { WebSocket: globalThis.WebSocket ?? Ws }))
    `
    writeFileSync(join(folder, 'main.mjs'), script)
    const node = Bun.spawn(['node', join(folder, 'main.mjs')], { stdout: 'pipe', stderr: 'pipe' })
    const [out, errors] = await Promise.all([new Response(node.stdout).text(), new Response(node.stderr).text()])
    expect(errors).toBe('')
    expect(out.trim()).toBe(expected)
  })

  test('an edge runtime, without modules of Node.js', async () => {
    const vm = new EdgeVM({ extend: (context) => Object.assign(context, { WebSocket }) })
    const source = bundle.replace(/export\s*\{[^}]*\};?\s*$/, '')
    const result: unknown = await vm.evaluate(`${source}\nrun(${JSON.stringify(server.url)})`)
    expect(result).toBe(expected)
  })

  describeInBrowser('every feature of the client', 'Chromium', (program) => {
    test('a page of another origin', async () => {
      const browser = await openChromium(program)
      try {
        await browser.open(page.url)
        const source = `data:text/javascript;base64,${Buffer.from(bundle).toString('base64')}`
        const result = await browser.run(
          async (module, url) => {
            const { run: runHere } = (await import(module)) as { run(url: string): Promise<string> }
            return runHere(url)
          },
          source,
          server.url,
        )
        expect(result).toBe(expected)
      } finally {
        await browser.close()
      }
    })
  })
})
