import { afterAll, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import * as clock from './clock.ts'
import { importFresh, importOnce, ModuleError } from './modules.ts'

const ours = { name: 'our-clock', exports: { ...clock } }
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'plinth-modules-')))
const main = join(folder, 'main.ts')
const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
const load = () => importFresh(main, ours)
const value = async () => (await load()).exports.value

async function refusal(): Promise<readonly string[]> {
  const error: unknown = await load().catch((thrown: unknown) => thrown)
  if (!(error instanceof ModuleError)) throw error
  return error.messages
}

beforeEach(() => {
  mkdirSync(join(folder, 'lib'), { recursive: true })
  write('main.ts', `import { b } from './lib/b.ts'\nexport const value = b`)
  write('lib/b.ts', `import { c } from './c'\nexport const b = c`)
  write('lib/c.ts', `export const c = 1`)
})
afterAll(() => rmSync(folder, { recursive: true }))

test('a change shows, also in a file that is imported by way of another', async () => {
  expect(await value()).toBe(1)
  write('lib/c.ts', `export const c = 2`)
  expect(await value()).toBe(2)
})

test('the files are those that were written, not packages and not ours', async () => {
  write(
    'lib/c.ts',
    `import 'node:fs'\nimport { systemClock } from 'our-clock'\nexport const c = typeof systemClock.now`,
  )
  const { exports, files } = await load()
  expect(exports.value).toBe('function')
  expect([...files].sort()).toEqual(['lib/b.ts', 'lib/c.ts', 'main.ts'].map((name) => join(folder, name)))
})

test('our module is the one that is running, not a copy', async () => {
  write('main.ts', `import { systemClock } from 'our-clock'\nexport const value = systemClock`)
  expect(await value()).toBe(clock.systemClock)
})

const mistakes = [
  ['does not parse', 'export const c =', ['lib/c.ts:1:16: Unexpected end of file']],
  ['exports something else', 'export const d = 1', ['lib/b.ts:1:10: No matching export in "']],
  ['imports a missing file', `import './missing.ts'`, ['lib/c.ts:1:8: Could not resolve: "./missing.ts"']],
  [
    'imports what ours lacks',
    `import { sytem } from 'our-clock'\nexport const c = sytem`,
    ['lib/c.ts:1:10: No matching export'],
  ],
  ['throws', `export const c = 1\nthrow new TypeError('no key')`, ['lib/c.ts:2:11: TypeError: no key']],
  ['throws a text', `export const c = 1\nthrow 'no key'`, ['main.ts: threw no key']],
] as const

test.each(mistakes)('a file that %s is refused with its place, and can be mended', async (_, text, messages) => {
  expect(await value()).toBe(1)
  write('lib/c.ts', text)
  const found = await refusal()
  expect(found.length).toBe(messages.length)
  for (const [at, message] of messages.entries()) expect(found[at]).toStartWith(message)
  write('lib/c.ts', 'export const c = 3')
  expect(await value()).toBe(3)
})

test('a wrong name imported from a package can be mended', async () => {
  write('main.ts', `import { nothing } from 'zod-like'\nexport const value = nothing`)
  mkdirSync(join(folder, 'node_modules/zod-like'), { recursive: true })
  write('node_modules/zod-like/package.json', '{"type":"module","exports":"./index.js"}')
  write('node_modules/zod-like/index.js', 'export const something = 5')
  for (let attempt = 0; attempt < 2; attempt++) expect((await refusal())[0]).toContain(`'nothing' not found`)
  write('main.ts', `import { something } from 'zod-like'\nexport const value = something`)
  expect(await value()).toBe(5)
  write('main.ts', `export const value = 6`)
  expect(await value()).toBe(6)
})

test('a module that is not there', async () => {
  await expect(importFresh(join(folder, 'none.ts'), ours)).rejects.toBeInstanceOf(ModuleError)
})

/** Writes a module that this process has not imported, with another text of `lib/c.ts`. */
function writeApart(c: string): string {
  const apart = mkdtempSync(join(folder, 'apart-'))
  mkdirSync(join(apart, 'lib'))
  for (const name of ['main.ts', 'lib/b.ts']) copyFileSync(join(folder, name), join(apart, name))
  writeFileSync(join(apart, 'lib/c.ts'), c)
  return join(apart, 'main.ts')
}

test('an import without a check has the same exports and files', async () => {
  const path = writeApart(`import { systemClock } from 'our-clock'\nexport const c = systemClock`)
  const { exports, files } = await importOnce(path, ours)
  expect(exports.value).toBe(clock.systemClock)
  const names = [...files].sort().map((file) => relative(dirname(path), file))
  expect(names).toEqual(['lib/b.ts', 'lib/c.ts', 'main.ts'])
})

test.each([
  ...mistakes,
  [
    'would import a missing file later',
    `export const c = () => import('./missing.ts')`,
    ['lib/c.ts:1:31: Could not resolve: "./missing.ts"'],
  ],
] as const)('a file that %s is refused without a check before its import', async (_, text, messages) => {
  const error: unknown = await importOnce(writeApart(text), ours).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ModuleError)
  const found = (error as ModuleError).messages
  expect(found.length).toBe(messages.length)
  for (const [at, message] of messages.entries()) expect(found[at]).toStartWith(message)
})

test('a module that was imported without a check before is imported in its current state', async () => {
  const path = writeApart('export const c = 1')
  expect((await importOnce(path, ours)).exports.value).toBe(1)
  writeFileSync(join(dirname(path), 'lib/c.ts'), 'export const c = 2')
  expect((await importOnce(path, ours)).exports.value).toBe(2)
})
