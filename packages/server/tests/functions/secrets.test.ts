/** Contract of stored secrets, on every engine. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import type { Sql } from '../../src/engines/sql/sql.ts'
import { sql } from '../../src/engines/sql/sql-text.ts'
import { redact, redactValue } from '../../src/features/functions/secrets/redaction.ts'
import { createSecretStore, type SecretStore } from '../../src/features/functions/secrets/secret-store.ts'
import { secretsMax, secretValueBytesMax } from '../../src/limits/functions.ts'
import { engines } from '../harness/engines.ts'

const serverSecret = 'secret-for-tests-0123456789-0123456789'

for (const engine of engines)
  describe(`secrets on ${engine.name}`, () => {
    const stack = new AsyncDisposableStack()
    const clock = manualClock()
    const environment: Record<string, string | undefined> = {}
    let storage: Sql
    let store: SecretStore
    const open = (secret = serverSecret) => createSecretStore({ sql: storage, secret, environment, clock })

    beforeAll(async () => {
      const opened = await engine.openStorage()
      stack.defer(() => opened.remove())
      const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-secrets-'))
      stack.defer(() => rmSync(dataFolder, { recursive: true }))
      const { databaseUrl = null } = opened.settings
      storage = await openSql({ databaseUrl, dataFolder, prepareInstance: async () => {}, clock, log: silentLog })
      stack.defer(() => storage.close())
      store = open()
    })
    afterAll(() => stack.disposeAsync())

    test('[FN-SECRET-1] a value is stored sealed, replaced, listed without its value, and removed', async () => {
      await store.set('CRM_KEY', 'first value')
      await store.set('CRM_KEY', 'the value')
      expect(await store.read(['CRM_KEY', 'OTHER'])).toEqual(new Map([['CRM_KEY', 'the value']]))
      expect(await store.list()).toEqual([{ name: 'CRM_KEY', updatedAt: new Date(clock.now()).toISOString() }])
      const rows = await storage
        .database({ namespace: '_functions', instanceId: null })
        .all(
          sql`SELECT * FROM ${storage.database({ namespace: '_functions', instanceId: null }).dialect.target({ namespace: '_functions', name: 'secrets', perInstance: false })}`,
        )
      expect(JSON.stringify(rows)).not.toContain('value')
      expect([await store.remove('CRM_KEY'), await store.remove('CRM_KEY')]).toEqual([true, false])
      expect(await store.remove('a\0b')).toBe(false)
      expect(await store.read(['CRM_KEY'])).toEqual(new Map())
    })

    test('[FN-SECRET-2] the environment wins, except where it is empty', async () => {
      await store.set('WINS', 'stored')
      environment.WINS = 'of the environment'
      environment.EMPTY = ''
      await store.set('EMPTY', 'stored')
      expect(await store.read(['WINS', 'EMPTY'])).toEqual(
        new Map([
          ['EMPTY', 'stored'],
          ['WINS', 'of the environment'],
        ]),
      )
    })

    test('[FN-SECRET-3] settings of the server are no secrets of code', async () => {
      environment.PLINTH_SECRET = serverSecret
      environment.DATABASE_URL = 'postgres://user:password@host/db'
      expect(await store.read(['PLINTH_SECRET', 'DATABASE_URL'])).toEqual(new Map())
      for (const name of ['PLINTH_SECRET', 'DATABASE_URL', 'a b', '', '1A', 'x'.repeat(129)])
        await expect(store.set(name, 'value')).rejects.toMatchObject({ status: 400 })
    })

    test('[FN-SECRET-4] values and their number are bounded', async () => {
      await expect(store.set('LARGE', 'x'.repeat(secretValueBytesMax + 1))).rejects.toMatchObject({ status: 400 })
      await expect(store.set('LARGE', '')).rejects.toMatchObject({ status: 400 })
      await store.set('LARGE', 'x'.repeat(secretValueBytesMax))
      const missing = secretsMax - (await store.list()).length
      for (let at = 0; at < missing; at++) await store.set(`S${at}`, 'value')
      await expect(store.set('ONE_MORE', 'value')).rejects.toMatchObject({ status: 400 })
      await store.set('S0', 'other value')
    })

    test('[FN-SECRET-1] a value that was sealed under another secret of the server is missing', async () => {
      const other = open(`${serverSecret}x`)
      expect(await other.read(['S0', 'WINS'])).toEqual(new Map([['WINS', 'of the environment']]))
    })
  })

test('[FN-SECRET-5] values are redacted in texts, the longest first', () => {
  const secrets = { SHORT: 'abc', KEY: 'k-123456', LONG: 'k-123456-long' }
  expect(redact('use k-123456-long or k-123456, abc', secrets)).toBe('use [secret LONG] or [secret KEY], abc')
  expect<unknown>(redactValue({ a: ['k-123456', 1, null], 'k-123456': true }, secrets)).toEqual({
    a: ['[secret KEY]', 1, null],
    '[secret KEY]': true,
  })
})
