/**
 * Executes the commands of README.md, of the atlas example and of the guides as written
 * (`harness/examples/documents`), against a running atlas with imported data. Twice, because a reader may start over.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readCountries } from '../../../../examples/atlas/countries.ts'
import { importAtlas } from '../../../../examples/atlas/import.ts'
import { readPlaces } from '../../../../examples/atlas/places.ts'
import { loadConfig } from '../../src/config/load.ts'
import { parseFences, runDocument } from '../harness/examples/documents.ts'

const repository = join(import.meta.dir, '../../../..')
const documents = [
  'README.md',
  'examples/atlas/README.md',
  ...(await readdir(join(repository, 'docs/guides'))).sort().map((name) => `docs/guides/${name}`),
]
/** These start PostgreSQL and Redis; `npm run test:all` reports when they are not available. */
const needServers = ['docs/guides/scaling.md']
const hasServers = Bun.env.PLINTH_TEST_DATABASE_URL !== undefined && Bun.env.PLINTH_TEST_REDIS_URL !== undefined
/** Countries that contain every place in the documents; totals in the documents are totals of these. */
const slice = 'AD,AR,CL,GS,IE,IS,LI,PT,SJ,VA'
/** Set to 1 to run the documents against all countries. */
const importAll = Bun.env.PLINTH_GUIDES_ALL === '1'

/** A folder that mirrors the repository, with separate data for the atlas. */
async function makeWorkFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plinth-guides-'))
  for (const entry of await readdir(repository)) {
    if (entry !== 'examples') await symlink(join(repository, entry), join(folder, entry))
  }
  await mkdir(join(folder, 'examples/atlas'), { recursive: true })
  return folder
}

let folder = ''
let server: ReturnType<typeof startAtlas> | null = null

const startAtlas = () => {
  const only = importAll ? [] : ['--only', slice]
  return spawnAtlas('--port', '0', '--data', join(folder, 'examples/atlas/data'), ...only)
}

/** Logs warnings only: the output is not read after the start, and request lines would fill the pipe. */
const spawnAtlas = (...options: readonly string[]) =>
  Bun.spawn([process.execPath, 'examples/atlas/start.ts', '--log-level', 'warn', ...options], {
    cwd: repository,
    env: { PATH: Bun.env.PATH ?? '' },
    stdout: 'pipe',
    stderr: 'pipe',
  })

beforeAll(async () => {
  folder = await makeWorkFolder()
  server = startAtlas()
  let output = ''
  for await (const chunk of server.stdout.pipeThrough(new TextDecoderStream())) {
    output += chunk
    if (output.includes('Ctrl-C')) return
  }
  throw new Error(`the atlas did not start:\n${output}${await new Response(server.stderr).text()}`)
})

afterAll(async () => {
  server?.kill('SIGTERM')
  expect(await server?.exited).toBe(0)
  await rm(folder, { recursive: true, force: true })
})

/** Reads a variable such as `PLINTH_URL='http://…'` from the shell file that the atlas wrote. */
async function readDemo(name: string): Promise<string> {
  const text = await Bun.file(join(folder, 'examples/atlas/data/demo.env')).text()
  return new RegExp(`^${name}='(.*)'$`, 'm').exec(text)?.[1] ?? ''
}

describe('documents', () => {
  for (const pass of ['as written', 'a second time']) {
    for (const document of documents) {
      if (needServers.includes(document) && !hasServers) continue
      test(`the commands of ${document} work ${pass}`, async () => {
        await runDocument(repository, document, folder)
      })
    }
  }

  test('configurations in the documents are valid', async () => {
    for (const [at, document] of documents.entries()) {
      const fences = parseFences(await Bun.file(join(repository, document)).text())
      for (const { text, line } of fences.filter(
        ({ text }) => text.startsWith('import') || text.startsWith('// plinth.config.ts'),
      )) {
        if (!text.includes('export default defineConfig({')) continue
        const path = join(folder, `document-${at}-${line}`, 'plinth.config.ts')
        await Bun.write(path, text)
        const { config } = await loadConfig(path, 'development', 'k'.repeat(32))
        expect({ document, line, namespaces: config.namespaces.size }).toEqual({ document, line, namespaces: 1 })
      }
    }
  })

  test('links in the documents point at existing files', async () => {
    for (const document of documents) {
      const markdown = await Bun.file(join(repository, document)).text()
      for (const [, target] of markdown.matchAll(/\]\((?!https?:|#)([^)#]+)/g))
        expect({
          document,
          target,
          exists: existsSync(join(repository, dirname(document), target ?? '')),
        }).toMatchObject({ exists: true })
    }
  })
})

describe('the atlas', () => {
  test('fails on a port in use with an error that names --port', async () => {
    const { port } = new URL(await readDemo('PLINTH_URL'))
    const second = spawnAtlas('--port', port, '--data', join(folder, 'second'))
    // A server that does start would run until stopped.
    const timer = setTimeout(() => second.kill('SIGTERM'), 60_000)
    const [stderr, code] = await Promise.all([new Response(second.stderr).text(), second.exited])
    clearTimeout(timer)
    expect({ stderr, code }).toEqual({ stderr: expect.stringContaining('--port'), code: 1 })
  })
})

describe('the import of the atlas', () => {
  /** An output stream that passes each progress line to `onLine`. */
  const output = (onLine: (line: string) => void = () => {}) =>
    ({ isTTY: false, write: onLine }) as unknown as NodeJS.WriteStream

  const connection = async () => ({
    url: await readDemo('PLINTH_URL'),
    serviceKey: await readDemo('PLINTH_SERVICE_KEY'),
    out: output(),
  })

  async function countPlaces(): Promise<number> {
    const response = await fetch(`${await readDemo('DB')}/places/count`)
    return ((await response.json()) as { total: number }).total
  }

  test('gives every place a valid, unique id', () => {
    const places = readPlaces(new Map(readCountries().map(({ id, name }) => [id, name])))
    expect(places.length).toBe(171_075)
    expect(new Set(places.map(({ id }) => id)).size).toBe(places.length)
    expect(places.filter(({ id }) => !/^[A-Za-z0-9_-]{1,64}$/.test(id))).toEqual([])
  })

  test('resumes after an interruption, and changes nothing when it is complete', async () => {
    // More batches than can be in flight, so that the interrupted import is incomplete.
    const options = { ...(await connection()), only: ['AT', 'CH', 'PT', 'AR'] }
    const interrupt = new AbortController()
    const first = await importAtlas({ ...options, signal: interrupt.signal, out: output(() => interrupt.abort()) })
    expect(first).toMatchObject({ finished: false, total: 5832 })
    const second = await importAtlas(options)
    expect(second).toEqual({ finished: true, done: 5832, total: 5832 })
    const places = await countPlaces()
    let printed = ''
    const third = await importAtlas({ ...options, out: output((line) => (printed += line)) })
    expect(third).toEqual(second)
    expect(printed).toContain('all 5,832 rows are already imported')
    expect(await countPlaces()).toBe(places)
  })

  test('reports an invalid key, an unreachable server and an unknown country', async () => {
    const options = { ...(await connection()), only: ['PT'] }
    await expect(importAtlas({ ...options, serviceKey: 'guess' })).rejects.toThrow('Invalid service key')
    await expect(importAtlas({ ...options, only: ['Portugal'] })).rejects.toThrow('no country Portugal')
    await expect(importAtlas({ ...options, url: 'http://127.0.0.1:9' })).rejects.toThrow('is the server running?')
  })
})
