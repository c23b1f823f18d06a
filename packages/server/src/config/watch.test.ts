import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { loadConfig } from './load.ts'
import { type ConfigWatch, watchConfig } from './watch.ts'

let folder = ''
let path = ''
let watch: ConfigWatch
let report: (event: string) => void
let refuse: Error | null

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
const siteKey = (config: Config) => config.captcha?.siteKey

/** The next thing that the watch reports after a change. */
async function after(change: () => void): Promise<string> {
  const reported = new Promise<string>((resolve) => {
    report = resolve
  })
  change()
  return reported
}

beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'plinth-watch-')))
  path = join(folder, 'plinth.config.ts')
  refuse = null
  mkdirSync(join(folder, 'lib'))
  write('lib/site.ts', `export const siteKey = 'first'`)
  write('plinth.config.ts', `import { siteKey } from './lib/site.ts'\nexport default { captcha: { siteKey } }`)
  const load = () => loadConfig(path, 'development', 'root-key')
  watch = watchConfig({
    files: (await load()).files,
    load,
    apply: async () => {
      if (refuse) throw refuse
    },
    onReload: ({ config }) => report(`reloaded ${siteKey(config)}`),
    onFailure: (error) => report(`failed ${(error as Error).message}`),
    debounceMs: 5,
  })
})
afterEach(() => {
  watch.close()
  rmSync(folder, { recursive: true })
})

test('a change of an imported file', async () => {
  expect(await after(() => write('lib/site.ts', `export const siteKey = 'second'`))).toBe('reloaded second')
})

test('a file put in the place of another, as editors do', async () => {
  write('new', `export default { captcha: { siteKey: 'renamed' } }`)
  expect(await after(() => renameSync(join(folder, 'new'), path))).toBe('reloaded renamed')
})

test('a mistake is reported, and mended', async () => {
  const text = `export default { captcha: { sitekey: 'x' } }`
  expect(await after(() => write('plinth.config.ts', text))).toStartWith('failed captcha.siteKey: is missing')
  expect(await after(() => write('plinth.config.ts', `export default {}`))).toBe('reloaded undefined')
})

test('a mistake in a file that was never loaded before is mended there', async () => {
  mkdirSync(join(folder, 'other'))
  write('other/site.ts', `export const siteKey =`)
  const text = `import { siteKey } from './other/site.ts'\nexport default { captcha: { siteKey } }`
  expect(await after(() => write('plinth.config.ts', text))).toStartWith('failed other/site.ts:1:')
  expect(await after(() => write('other/site.ts', `export const siteKey = 'other'`))).toBe('reloaded other')
})

test('a configuration that cannot be served is reported', async () => {
  refuse = new Error('needs a migration')
  expect(await after(() => write('lib/site.ts', `export const siteKey = 'third'`))).toBe('failed needs a migration')
  refuse = null
  expect(await after(() => write('lib/site.ts', `export const siteKey = 'fourth'`))).toBe('reloaded fourth')
})
