import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreateSecret } from './secrets.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-secrets-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('a secret is made up once, kept from others, and found again', async () => {
  const path = join(folder, 'new', 'data', 'secret')
  const made = await loadOrCreateSecret(path, 32)
  expect(made).toMatch(/^[\w-]{43}$/)
  expect(await loadOrCreateSecret(path, 32)).toBe(made)
  expect(readFileSync(path, 'utf8')).toBe(`${made}\n`)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700)
  expect(readdirSync(join(folder, 'new', 'data'))).toEqual(['secret'])
})

test('those who start at once get one secret', async () => {
  const path = join(folder, 'raced')
  const secrets = await Promise.all(Array.from({ length: 20 }, () => loadOrCreateSecret(path, 32)))
  expect(new Set(secrets).size).toBe(1)
  expect(readFileSync(path, 'utf8').trim()).toBe(secrets[0] as string)
  expect(readdirSync(folder).filter((name) => name.startsWith('raced'))).toEqual(['raced'])
})

test('an existing secret is read without surrounding whitespace', async () => {
  const path = join(folder, 'written')
  writeFileSync(path, '  a-secret-that-an-operator-has-written\r\n')
  expect(await loadOrCreateSecret(path, 32)).toBe('a-secret-that-an-operator-has-written')
})

test.each(['', '\n', 'short'])('a file with %j is refused and left alone', async (text) => {
  const path = join(folder, 'damaged')
  writeFileSync(path, text)
  await expect(loadOrCreateSecret(path, 32)).rejects.toThrow(
    `${path}: must contain a secret of at least 32 characters.`,
  )
  expect(readFileSync(path, 'utf8')).toBe(text)
})
