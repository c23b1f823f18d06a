import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFilterNode } from '../access/filter.ts'
import { load, loadConfig } from './load.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'plinth-load-')))
const path = join(folder, 'plinth.config.ts')
afterAll(() => rmSync(folder, { recursive: true }))

/** A configuration with one table and this read rule, in a folder where nothing is installed. */
const write = (rule: string): void =>
  writeFileSync(
    path,
    `import { defineConfig, or } from 'plinth'
     export default defineConfig({
       databases: { shared: { tables: { posts: { schema: { a: { type: 'string' } }, access: { read: ${rule} } } } } },
     })`,
  )
const options = { config: path, data: join(folder, 'data') }

test('a configuration in an empty folder, with filters that the server knows', async () => {
  write(`() => or({ a: 'x' })`)
  const { config, settings, warnings, files } = await load(options, 'development')
  const read = config.namespaces.get('shared')?.tables.get('posts')?.access.read
  expect(typeof read === 'function' && findFilterNode(read(null) as object)).toEqual({ kind: 'or', of: [{ a: 'x' }] })
  expect(config.serviceKeys).toEqual([{ name: 'root', key: settings.serviceKey, scopes: ['*'] }])
  expect(config.mode).toBe('development')
  expect({ warnings, files }).toEqual({ warnings: [], files: [path] })
})

test('loaded again it is what the file says now', async () => {
  const readRule = async () => {
    const { config } = await loadConfig(path, 'release', 'root-key')
    return config.namespaces.get('shared')?.tables.get('posts')?.access.read
  }
  write('true')
  expect(await readRule()).toBe(true)
  write('false')
  expect(await readRule()).toBe(false)
})

test.each([
  ['a mistake', `export default { databases: { shared: {} } }`, 'databases.shared.tables: is missing'],
  ['no default export', `export const config = {}`, 'plinth.config.ts: has no default export.'],
  ['bad syntax', `export default {`, 'plinth.config.ts:1:16: '],
  [
    'an import that fails',
    `import { nothing } from 'plinth'\nexport default nothing`,
    'plinth.config.ts:1:10: No matching export',
  ],
  ['something that throws', `throw new Error('no key')`, 'plinth.config.ts:1:11: no key'],
])('%s is said, and nothing is written', async (_, text, message) => {
  writeFileSync(path, text)
  const data = join(folder, 'untouched')
  await expect(load({ config: path, data }, 'release')).rejects.toThrow(message)
  expect(existsSync(data)).toBe(false)
})

test('a missing configuration is said with what to do', async () => {
  await expect(load({ config: join(folder, 'none.ts') }, 'release')).rejects.toThrow(
    /none\.ts\. `plinth init` writes one/,
  )
})
