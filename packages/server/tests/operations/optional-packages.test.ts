/** A server without its optional packages starts, and the features that need them report the missing package. */
import { afterEach, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { filePath, store } from '../harness/storage/files.ts'

const configText = `
import { defineConfig } from 'plinth'
export default defineConfig({
  storage: { buckets: { pictures: { images: true, access: { read: true, write: true } } } },
  vector: { notes: { dimensions: 2, metric: 'cosine' } },
})
`
const packageFolder = join(import.meta.dir, '../..')
const modules = join(packageFolder, '../../node_modules')
const optional: ReadonlySet<string> = new Set(['sharp', '@img', 'usearch', '@node-rs', 'plinth'])
const redDot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/q842iQAAAABJRU5ErkJggg==',
  'base64',
)

let server: SpawnedServer | undefined
let copy = ''
afterEach(async () => {
  await server?.remove()
  rmSync(copy, { recursive: true, force: true })
})

/** Copies the server without the optional packages; returns the path of the program. */
function copyWithoutOptionalPackages(): string {
  copy = mkdtempSync(join(tmpdir(), 'plinth-copy-'))
  cpSync(join(packageFolder, 'src'), join(copy, 'src'), { recursive: true })
  cpSync(join(packageFolder, 'package.json'), join(copy, 'package.json'))
  mkdirSync(join(copy, 'node_modules'))
  for (const name of readdirSync(modules))
    if (!optional.has(name) && !name.startsWith('.')) symlinkSync(join(modules, name), join(copy, 'node_modules', name))
  return join(copy, 'src/main.ts')
}

test('without optional packages the server starts, hashes passwords, and refuses image transformations with the reason', async () => {
  server = await spawnServer(configText, undefined, { main: copyWithoutOptionalPackages() })
  const { service } = server
  await store(service, 'pictures', { key: 'dot.png', content: redDot, type: 'image/png' })
  expect((await service.get(filePath('pictures', 'dot.png'))).status).toBe(200)
  const { status, body } = await service.get(`${filePath('pictures', 'dot.png')}?width=10`)
  expect(status).toBe(503)
  expect(body).toMatchObject({
    slug: 'unavailable',
    message: 'Image transformations need the optional package sharp, which this server does not have',
  })
  const account = { email: 'ada@example.com', password: 'correct horse battery' }
  expect((await service.post('/api/auth/signup', account)).status).toBe(201)
  expect((await service.post('/api/auth/signin', account)).status).toBe(200)
  expect((await service.get('/api/health')).status).toBe(200)
})
