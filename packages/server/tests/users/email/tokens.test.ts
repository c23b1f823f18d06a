/** One-time tokens and codes on every engine: single use, and only hashes are stored. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { openSql } from '../../../src/engines/open.ts'
import type { Database, Sql } from '../../../src/engines/sql/sql.ts'
import { sql } from '../../../src/engines/sql/sql-text.ts'
import { createOneTimeTokens, type OneTimeTokens } from '../../../src/features/users/email/one-time-tokens.ts'
import { prepareUsersTables, usersAddress, usersTable } from '../../../src/features/users/migrations.ts'
import { oneTimeTokensSweptMax } from '../../../src/limits/users.ts'
import { engines, type Storage } from '../../harness/engines.ts'

const minute = 60_000
const concurrentUses = 50
const clock = manualClock()

for (const engine of engines)
  describe(`one-time tokens on ${engine.name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-tokens-'))
    let storage: Storage
    let engineSql: Sql
    let database: Database
    let tokens: OneTimeTokens

    beforeAll(async () => {
      storage = await engine.openStorage()
      const databaseUrl = storage.settings.databaseUrl ?? null
      engineSql = await openSql({ databaseUrl, dataFolder: folder, prepareInstance: async () => {}, log: silentLog })
      database = engineSql.database(usersAddress)
      await prepareUsersTables(database)
      tokens = createOneTimeTokens({ database, clock, secret: 's'.repeat(32) })
    })
    afterAll(async () => {
      await engineSql.close()
      await storage.remove()
      rmSync(folder, { recursive: true })
    })

    const input = { purpose: 'oauth-state', userId: 'u', data: { a: [1, 'ü'] }, lifetimeMs: minute } as const
    const issue = (issued: Parameters<OneTimeTokens['issue']>[1] = input): Promise<string> =>
      database.write((tx) => tokens.issue(tx, issued))
    const redeem = (token: string, purpose: Parameters<OneTimeTokens['redeem']>[1] = 'oauth-state') =>
      database.write((tx) => tokens.redeem(tx, purpose, token))
    const rows = () => database.all(sql`SELECT * FROM ${usersTable(database.dialect, 'one_time_tokens')}`)

    test('[MAIL-22] tokens are long and random, and are not stored', async () => {
      const issued = await Promise.all(Array.from({ length: 20 }, () => issue()))
      for (const token of issued) expect(token).toMatch(/^[\w-]{43}$/)
      expect(new Set(issued).size).toBe(20)
      const stored = JSON.stringify(await rows())
      for (const token of issued) expect(stored).not.toContain(token)
    })

    test('[MAIL-22] a code is stored as a hash keyed with the secret of the server', async () => {
      const codeInput = { purpose: 'email-otp', data: {}, lifetimeMs: minute } as const
      const source = '192.0.2.1'
      const code = await database.write((tx) => tokens.issueCode(tx, { ...codeInput, email: 'a@example.org', source }))
      expect(code).toMatch(/^[0-9]{6}$/)
      // Trying all codes against a stolen row requires the secret too.
      const others = createOneTimeTokens({ database, clock, secret: 'o'.repeat(32) })
      expect(
        await database.write((tx) => others.redeemCode(tx, 'email-otp', { email: 'a@example.org', code, source })),
      ).toBeNull()
      expect(
        await database.write((tx) => tokens.redeemCode(tx, 'email-otp', { email: 'a@example.org', code, source })),
      ).not.toBeNull()
    })

    test('[MAIL-13] a token returns the subject it was issued for, once', async () => {
      const token = await issue({ ...input, email: 'a@example.org' })
      const subject = { userId: 'u', email: 'a@example.org', data: { a: [1, 'ü'] } }
      expect(await tokens.find(database, 'oauth-state', token)).toEqual(subject)
      expect(await redeem(token, 'magic-link')).toBeNull()
      expect(await redeem(token)).toEqual(subject)
      expect(await redeem(token)).toBeNull()
      expect(await tokens.find(database, 'oauth-state', token)).toBeNull()
    })

    test('[MAIL-13] of fifty concurrent redemptions one succeeds', async () => {
      const token = await issue()
      const found = await Promise.all(Array.from({ length: concurrentUses }, () => redeem(token)))
      expect(found.filter(Boolean)).toHaveLength(1)
    })

    test('[MAIL-13] a transaction that is rolled back does not use up the token', async () => {
      const token = await issue()
      const failing = database.write(async (tx) => {
        await tokens.redeem(tx, 'oauth-state', token)
        throw new Error('rolled back')
      })
      await expect(failing).rejects.toThrow('rolled back')
      expect(await redeem(token)).not.toBeNull()
    })

    test('[MAIL-13] an expired token is neither found nor redeemed', async () => {
      const token = await issue()
      clock.advance(minute)
      expect(await redeem(token)).toBeNull()
      expect(await tokens.find(database, 'oauth-state', token)).toBeNull()
    })

    test('[MAIL-22] concurrent attempts are counted exactly, and one too many removes the token', async () => {
      const token = await issue()
      const attempts = await Promise.all(
        Array.from({ length: concurrentUses }, () =>
          database.write((tx) => tokens.countAttempt(tx, 'oauth-state', token, 5)),
        ),
      )
      expect(attempts.filter(Boolean)).toHaveLength(5)
      expect(await redeem(token)).toBeNull()
      expect(await database.write((tx) => tokens.countAttempt(tx, 'oauth-state', 'unknown', 5))).toBe(false)
    })

    test('[MAIL-22] the tokens of a user can be revoked, all of them or those of one purpose', async () => {
      const [state, link, others] = [
        await issue(),
        await issue({ ...input, purpose: 'magic-link' }),
        await issue({ ...input, userId: 'another user' }),
      ]
      await database.write((tx) => tokens.removeAll(tx, 'u', 'magic-link'))
      expect(await redeem(link, 'magic-link')).toBeNull()
      expect(await tokens.find(database, 'oauth-state', state)).not.toBeNull()
      await database.write((tx) => tokens.removeAll(tx, 'u'))
      expect(await redeem(state)).toBeNull()
      expect(await redeem(others)).not.toBeNull()
    })

    test('[MAIL-22] a sweep deletes a bounded number of expired tokens and no others', async () => {
      await tokens.sweep(clock.now() + minute)
      expect(await rows()).toEqual([])
      await database.write(async (tx) => {
        for (let n = 0; n < oneTimeTokensSweptMax + 10; n++) await tokens.issue(tx, input)
      })
      const alive = await issue({ ...input, lifetimeMs: 10 * minute })
      clock.advance(minute)
      expect(await tokens.sweep(clock.now())).toBe(oneTimeTokensSweptMax)
      expect(await tokens.sweep(clock.now())).toBe(10)
      expect(await redeem(alive)).not.toBeNull()
    })
  })
