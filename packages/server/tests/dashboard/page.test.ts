/** The page of the dashboard: its headers, its files, and a server without a build. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expectRefusal } from '../harness/refusal.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-dashboard-'))
const built = join(folder, 'built')
let server: TestServer

beforeAll(async () => {
  server = await startServer({ config: {}, substitutes: { dashboardFolder: built } })
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

function build(page: string): void {
  mkdirSync(join(built, 'assets'), { recursive: true })
  for (const name of ['app-1a2b.js', 'app-1a2b.js.br', 'app-1a2b.js.gz', 'style-3c4d.css', 'notes.txt'])
    writeFileSync(join(built, 'assets', name), `content of ${name}`)
  writeFileSync(join(built, 'index.html'), page)
}

test('[DASH-15] without a build the page explains how to build it, and appears once it is built', async () => {
  const missing = await server.anonymous.get('/dashboard')
  expect(missing.status).toBe(503)
  expect(missing.text).toContain('npm run build')
  expectRefusal(await server.anonymous.get('/dashboard/assets/app-1a2b.js'), 404)
  build(
    '<style nonce="__CSP_NONCE__"></style><script src="/dashboard/assets/app-1a2b.js" nonce="__CSP_NONCE__"></script>',
  )
  expect((await server.anonymous.get('/dashboard')).status).toBe(200)
})

test('[DASH-15] every view is the page, with a policy and a nonce of its own', async () => {
  const nonces = new Set<string>()
  for (const path of ['/dashboard', '/dashboard/', '/dashboard/data/shared/posts?filter=%5B%5D', '/dashboard/a/b/c']) {
    const { status, headers, text } = await server.anonymous.get(path)
    expect(status).toBe(200)
    const policy = headers.get('content-security-policy') ?? ''
    const nonce = /style-src 'self' 'nonce-([\w+/]{22}==)'/.exec(policy)?.[1] ?? ''
    nonces.add(nonce)
    expect(text).toBe(
      `<style nonce="${nonce}"></style><script src="/dashboard/assets/app-1a2b.js" nonce="${nonce}"></script>`,
    )
    expect(policy.replace(nonce, '…')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-…'; img-src 'self' blob:; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
    )
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('camera=()'),
    })
  }
  expect(nonces.size).toBe(4)
})

test('[DASH-15] files are compressed as the client accepts, and cached for good', async () => {
  const get = (coding: string, file = 'app-1a2b.js') =>
    fetch(`${server.url}/dashboard/assets/${file}`, { headers: { 'accept-encoding': coding }, decompress: false })
  for (const [accepted, coding, suffix] of [
    ['gzip, deflate, br', 'br', '.br'],
    ['gzip', 'gzip', '.gz'],
    ['br;q=0, gzip', 'gzip', '.gz'],
    ['identity', null, ''],
  ] as const) {
    const answer = await get(accepted)
    expect(answer.headers.get('content-encoding')).toBe(coding)
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(await answer.text()).toBe(`content of app-1a2b.js${suffix}`)
  }
  expect((await get('br', 'style-3c4d.css')).headers.get('content-encoding')).toBeNull()
  for (const file of [
    'none.js',
    'app-1a2b.js.br',
    'notes.txt',
    '..%2findex.html',
    '%2e%2e%2fpackage.json',
    'x/app-1a2b.js',
  ])
    expect((await get('br', file)).status).toBe(404)
})

test('[DASH-15] below /dashboard/api there are only endpoints', async () => {
  for (const path of ['/dashboard/api', '/dashboard/api/none', '/dashboard/api/auth/signin', '/dashboard/assets'])
    expectRefusal(await server.anonymous.get(path), 404)
  expect((await server.anonymous.post('/dashboard/users', {})).status).toBe(405)
})

test('[DASH-15] another build is served without a restart', async () => {
  build('the next build')
  const later = new Date(Date.now() + 60_000)
  utimesSync(join(built, 'index.html'), later, later)
  expect((await server.anonymous.get('/dashboard')).text).toBe('the next build')
})
