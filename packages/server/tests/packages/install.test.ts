/** The published packages in an empty folder: installed by npm, typed, and served from their JavaScript. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openProject, readyUrl } from '../harness/packages/project.ts'
import { makeTarballs } from '../harness/packages/tarballs.ts'

const repository = join(import.meta.dir, '../../../..')
const compilers = ['typescript-5.9', 'typescript'].map((name) => join(repository, 'node_modules', name, 'bin/tsc'))
const serviceKey = 'a-service-key-for-this-test'
const project = openProject()
const write = (name: string, text: string): void => writeFileSync(join(project.folder, name), text)
const readJson = (name: string) => JSON.parse(readFileSync(join(project.folder, name), 'utf8'))

beforeAll(() => {
  const tarballs = makeTarballs()
  const paths = [tarballs.plinth.path, tarballs.client.path]
  project.run(['npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', ...paths])
  tarballs.remove()
})
afterAll(() => project.remove())

/** Compiles strictly, with the declarations of packages, without types of Bun or Node.js; returns the errors. */
function compile(compiler: string, file: string, options: object): string {
  const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }
  const compilerOptions = { ...strict, target: 'es2022', types: [], noEmit: true, ...options }
  write('tsconfig.json', JSON.stringify({ compilerOptions, files: [file] }))
  return Bun.spawnSync([process.execPath, compiler, '--pretty', 'false'], { cwd: project.folder }).stdout.toString()
}

const program = (url: string): string => `
import { auth, createClient, live, records } from 'plinth-client'
import type config from './plinth.config'

const reader = createClient<typeof config>('${url}', [records, auth, live])
const writer = createClient<typeof config>('${url}', [records, auth])
await reader.auth.signInAnonymously()
const { user } = await writer.auth.signInAnonymously()

const list = reader.db().notes.where('published', '==', true).live()
const arrived = new Promise<string>((resolve) => {
  list.subscribe(() => {
    const [note] = list.current.items
    if (note) resolve(note.title)
  })
})
const atFirst: number = (await list.ready).length
const note = await writer.db().notes.insert({ title: 'Hello', published: true, authorId: user.id })
console.log(JSON.stringify({ atFirst, id: note.id, arrived: await arrived }))
// @ts-expect-error: a field that the configuration does not declare.
await writer.db().notes.insert({ titel: 'Hello', authorId: user.id }).catch(() => {})
reader.close()
writer.close()
`

describe('npm install, npx plinth init, npm run dev', () => {
  test('init adds the scripts', () => {
    expect(project.run(['npx', 'plinth', 'init'])).toEndWith('Next: npm run dev\n')
    expect(readJson('package.json').scripts).toEqual({ dev: 'plinth dev', start: 'plinth start' })
  })

  test.each(compilers)('the configuration compiles with %s, without types of a platform', (compiler) => {
    for (const resolution of [{ module: 'esnext', moduleResolution: 'bundler' }, { module: 'nodenext' }])
      expect(compile(compiler, 'plinth.config.ts', { lib: ['es2022'], ...resolution })).toBe('')
  })

  test('a typed program inserts a record and receives it live', async () => {
    const server = project.start(['npm', 'run', 'dev'], { PLINTH_PORT: '0' })
    write('program.ts', program(await readyUrl(server)))
    const options = { lib: ['es2022', 'dom'], module: 'esnext', moduleResolution: 'bundler' }
    for (const compiler of compilers) expect(compile(compiler, 'program.ts', options)).toBe('')
    const answer = JSON.parse(project.run([process.execPath, 'program.ts']))
    expect(answer).toEqual({ atFirst: 0, id: expect.any(String), arrived: 'Hello' })
  })

  test('the version is that of the package', () => {
    expect(project.run(['npx', 'plinth', '--version']).trim()).toBe(
      readJson('node_modules/plinth/package.json').version,
    )
  })
})

const redDot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M/wHwAEBgIApD5fRAAAAABJRU5ErkJggg==',
  'base64',
)

test('threads and child processes of the installed server run: SQL, vectors, images, backup', async () => {
  write(
    'programs.config.ts',
    `import { defineConfig } from 'plinth'
     export default defineConfig({
       sql: { reports: {} },
       vector: { points: { dimensions: 2, metric: 'cosine' } },
       storage: { buckets: { pictures: { images: true, access: { read: true, write: true } } } },
     })`,
  )
  const files = ['--config', 'programs.config.ts', '--data', 'programs']
  const server = project.start(['npx', 'plinth', 'start', '--port', '0', '--host', '127.0.0.1', ...files], {
    PLINTH_SERVICE_KEY: serviceKey,
  })
  const url = await readyUrl(server)
  const headers = { 'x-platform-service-key': serviceKey, 'content-type': 'application/json' }
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: await answer.json() }
  }
  expect(await post('/api/sql/reports', { query: 'SELECT 40 + 2 AS answer' })).toMatchObject({
    status: 200,
    body: { results: [{ answer: 42 }] },
  })
  const vectors = [
    { id: 'east', values: [1, 0] },
    { id: 'north', values: [0, 1] },
  ]
  expect((await post('/api/vector/points', { action: 'upsert', vectors })).status).toBe(200)
  const nearest = await post('/api/vector/points', { action: 'search', vector: [0.9, 0.1], topK: 1 })
  expect(nearest).toMatchObject({ status: 200, body: { matches: [{ id: 'east' }] } })
  const form = new FormData()
  form.append('key', 'dot.png')
  form.append('file', new Blob([redDot], { type: 'image/png' }), 'dot.png')
  const key = { 'x-platform-service-key': serviceKey }
  const upload = await fetch(`${url}/api/storage/pictures/upload`, { method: 'POST', headers: key, body: form })
  expect(upload.status).toBe(201)
  const image = await fetch(`${url}/api/storage/pictures/dot.png?width=10&format=webp`)
  expect({ status: image.status, type: image.headers.get('content-type') }).toEqual({ status: 200, type: 'image/webp' })
  project.run(['npx', 'plinth', 'backup', 'copy.tar.gz', '--data', 'programs'], { PLINTH_SERVICE_KEY: serviceKey })
  expect(existsSync(join(project.folder, 'copy.tar.gz'))).toBe(true)
})
