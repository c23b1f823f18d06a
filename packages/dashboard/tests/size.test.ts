/** Sizes of the dashboard as browsers receive them, with gzip, and the form of what the server serves. */
import { beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { buildDashboard, dashboardFolder } from '../../../scripts/build/dashboard.ts'

const assets = join(dashboardFolder, 'assets')
const textOf = (name: string): string => readFileSync(join(assets, name), 'utf8')
const bytesOf = (name: string): number => statSync(join(assets, `${name}.gz`)).size
const indexOf = (): string => readFileSync(join(dashboardFolder, 'index.html'), 'utf8')

/** The files that `names` import when they start, with themselves; not those that an area loads later. */
function startedBy(names: readonly string[]): Set<string> {
  const found = new Set<string>()
  const visit = (name: string): void => {
    if (found.has(name)) return
    found.add(name)
    for (const [, next] of textOf(name).matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) visit(next as string)
  }
  for (const name of names) visit(name)
  return found
}

const sum = (names: Iterable<string>): number => [...names].reduce((total, name) => total + bytesOf(name), 0)

beforeAll(async () => {
  await buildDashboard()
})

test('the first page has at most 250 kB, all chunks 800 kB', () => {
  const named = [...indexOf().matchAll(/\/dashboard\/assets\/([\w-]+\.(?:js|css))"/g)].map(([, name]) => name as string)
  expect(named).toHaveLength(3)
  const plain = readdirSync(assets).filter((name) => /\.(?:js|css)$/.test(name))
  expect(sum(startedBy(named))).toBeLessThanOrEqual(250_000)
  expect(sum(plain)).toBeLessThanOrEqual(800_000)
})

test('each file has its brotli and gzip form beside it, and a hash in its name', () => {
  for (const name of readdirSync(assets).filter((one) => /\.(?:js|css)$/.test(one))) {
    expect(name).toMatch(/-[a-z0-9]{8,}\.(?:js|css)$/)
    const bytes = readFileSync(join(assets, name))
    expect(brotliDecompressSync(readFileSync(join(assets, `${name}.br`))).equals(bytes)).toBe(true)
    expect(gunzipSync(readFileSync(join(assets, `${name}.gz`))).equals(bytes)).toBe(true)
  }
})

test('the page has a place for the nonce, and nothing inline', () => {
  const page = indexOf()
  expect(page).toContain('content="__CSP_NONCE__"')
  expect(page).not.toMatch(/<style|<script>|style=|\son\w+=/)
  expect(existsSync(join(dashboardFolder, 'assets'))).toBe(true)
})

test('a second build with the same sources does nothing', async () => {
  expect(await buildDashboard()).toBe(false)
})
