/**
 * The documents are run as they are written (`harness/documents`): README.md, that of the atlas and the guides, against
 * the atlas started and filled by its own programs. Twice, because a reader may start over. Leaves the meaning of the
 * answers to the chapters' own tests.
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
import { parseFences, runDocument } from '../harness/documents.ts'

const repository = join(import.meta.dir, '../../../..')
const documents = [
  'README.md',
  'examples/atlas/README.md',
  ...(await readdir(join(repository, 'docs/guides'))).sort().map((name) => `docs/guides/${name}`),
]
/** These start a PostgreSQL and a Redis; `npm run test:all` says so where they are not available. */
const needServers = ['docs/guides/scaling.md']
const hasServers = Bun.env.PLINTH_TEST_DATABASE_URL !== undefined && Bun.env.PLINTH_TEST_REDIS_URL !== undefined
/** Countries with every place the documents mention; totals the documents print are totals of these. */
const slice = 'AD,AR,CL,GS,IE,IS,LI,PT,SJ,VA'
/** Set to 1 to run the documents against all places. */
const importAll = Bun.env.PLINTH_GUIDES_ALL === '1'

/** A folder that looks like the repository, but whose atlas keeps its data apart. */
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

/** Nobody reads what it prints after the start: a request a line would fill the pipe. */
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

/** A line such as `PLINTH_URL='http://…'` of what the atlas wrote for shells. */
async function readDemo(name: string): Promise<string> {
  const text = await Bun.file(join(folder, 'examples/atlas/data/demo.env')).text()
  return new RegExp(`^${name}='(.*)'$`, 'm').exec(text)?.[1] ?? ''
}

describe('documents', () => {
  for (const turn of ['as written', 'a second time']) {
    for (const document of documents) {
      if (needServers.includes(document) && !hasServers) continue
      test(`${document} works ${turn}`, async () => {
        await runDocument(repository, document, folder)
      })
    }
  }

  test('configurations are accepted', async () => {
    for (const [at, document] of documents.entries()) {
      const fences = parseFences(await Bun.file(join(repository, document)).text())
      for (const { text, line } of fences.filter(
        ({ text }) => text.startsWith('import') || text.startsWith('// plinth.config.ts'),
      )) {
        if (!text.includes('defineConfig({')) continue
        const path = join(folder, `document-${at}-${line}`, 'plinth.config.ts')
        await Bun.write(path, text)
        const { config } = await loadConfig(path, 'development', 'k'.repeat(32))
        expect({ document, line, namespaces: config.namespaces.size }).toEqual({ document, line, namespaces: 1 })
      }
    }
  })

  test('links lead somewhere', async () => {
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

describe('starting the atlas', () => {
  test('on a port that is taken says so, and names the option that helps', async () => {
    const { port } = new URL(await readDemo('PLINTH_URL'))
    const second = spawnAtlas('--port', port, '--data', join(folder, 'second'))
    // One that does start would go on for ever.
    const timer = setTimeout(() => second.kill('SIGTERM'), 60_000)
    const [said, code] = await Promise.all([new Response(second.stderr).text(), second.exited])
    clearTimeout(timer)
    expect({ said, code }).toEqual({ said: expect.stringContaining('--port'), code: 1 })
  })
})

describe('the import of the atlas', () => {
  /** Takes the progress lines; `onLine` is told of each. */
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

  test('gives every place a valid id of its own', () => {
    const places = readPlaces(new Map(readCountries().map(({ id, name }) => [id, name])))
    expect(places.length).toBe(171_075)
    expect(new Set(places.map(({ id }) => id)).size).toBe(places.length)
    expect(places.filter(({ id }) => !/^[A-Za-z0-9_-]{1,64}$/.test(id))).toEqual([])
  })

  test('continues where it was interrupted, and changes nothing when it is complete', async () => {
    // More batches than are ever in flight, so that there is something left to interrupt.
    const options = { ...(await connection()), only: ['AT', 'CH', 'PT', 'AR'] }
    const interrupt = new AbortController()
    const first = await importAtlas({ ...options, signal: interrupt.signal, out: output(() => interrupt.abort()) })
    expect(first).toMatchObject({ finished: false, total: 5832 })
    const second = await importAtlas(options)
    expect(second).toEqual({ finished: true, done: 5832, total: 5832 })
    const places = await countPlaces()
    let said = ''
    const third = await importAtlas({ ...options, out: output((line) => (said += line)) })
    expect(third).toEqual(second)
    expect(said).toContain('all 5,832 rows are there already')
    expect(await countPlaces()).toBe(places)
  })

  test('says what is wrong: a key that is refused, a server that is not there, a country that is none', async () => {
    const options = { ...(await connection()), only: ['PT'] }
    await expect(importAtlas({ ...options, serviceKey: 'guess' })).rejects.toThrow('Invalid service key')
    await expect(importAtlas({ ...options, only: ['Portugal'] })).rejects.toThrow('no country Portugal')
    await expect(importAtlas({ ...options, url: 'http://127.0.0.1:9' })).rejects.toThrow('is the server running?')
  })
})
