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
const racers = 50
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

    const about = { purpose: 'oauth-state', userId: 'u', data: { a: [1, 'ü'] }, lifetimeMs: minute } as const
    const issue = (order: Parameters<OneTimeTokens['issue']>[1] = about): Promise<string> =>
      database.write((tx) => tokens.issue(tx, order))
    const redeem = (token: string, purpose: Parameters<OneTimeTokens['redeem']>[1] = 'oauth-state') =>
      database.write((tx) => tokens.redeem(tx, purpose, token))
    const rows = () => database.all(sql`SELECT * FROM ${usersTable(database.dialect, 'one_time_tokens')}`)

    test('[MAIL-22] a token is long and random, and is not what is stored', async () => {
      const issued = await Promise.all(Array.from({ length: 20 }, () => issue()))
      for (const token of issued) expect(token).toMatch(/^[\w-]{43}$/)
      expect(new Set(issued).size).toBe(20)
      const stored = JSON.stringify(await rows())
      for (const token of issued) expect(stored).not.toContain(token)
    })

    test('[MAIL-22] a code is not what is stored, nor its plain hash, and none is like another’s', async () => {
      const order = { purpose: 'email-otp', data: {}, lifetimeMs: minute } as const
      const source = '192.0.2.1'
      const code = await database.write((tx) => tokens.issueCode(tx, { ...order, email: 'a@example.org', source }))
      expect(code).toMatch(/^[0-9]{6}$/)
      // What the row must be good for: somebody who reads it, and tries all codes, must have the secret too.
      const others = createOneTimeTokens({ database, clock, secret: 'o'.repeat(32) })
      expect(
        await database.write((tx) => others.redeemCode(tx, 'email-otp', { email: 'a@example.org', code, source })),
      ).toBeNull()
      expect(
        await database.write((tx) => tokens.redeemCode(tx, 'email-otp', { email: 'a@example.org', code, source })),
      ).not.toBeNull()
    })

    test('[MAIL-13] a token gives back what it was issued about, once', async () => {
      const token = await issue({ ...about, email: 'a@example.org' })
      const subject = { userId: 'u', email: 'a@example.org', data: { a: [1, 'ü'] } }
      expect(await tokens.find(database, 'oauth-state', token)).toEqual(subject)
      expect(await redeem(token, 'magic-link')).toBeNull()
      expect(await redeem(token)).toEqual(subject)
      expect([await redeem(token), await tokens.find(database, 'oauth-state', token)]).toEqual([null, null])
    })

    test('[MAIL-13] of fifty at once one gets it', async () => {
      const token = await issue()
      const found = await Promise.all(Array.from({ length: racers }, () => redeem(token)))
      expect(found.filter(Boolean)).toHaveLength(1)
    })

    test('[MAIL-13] a write that is undone has not used it', async () => {
      const token = await issue()
      const failing = database.write(async (tx) => {
        await tokens.redeem(tx, 'oauth-state', token)
        throw new Error('undone')
      })
      await expect(failing).rejects.toThrow('undone')
      expect(await redeem(token)).not.toBeNull()
    })

    test('[MAIL-13] it ends with its time', async () => {
      const token = await issue()
      clock.advance(minute)
      expect([await redeem(token), await tokens.find(database, 'oauth-state', token)]).toEqual([null, null])
    })

    test('[MAIL-22] tries are counted exactly, and the token goes with the one too many', async () => {
      const token = await issue()
      const attempts = await Promise.all(
        Array.from({ length: racers }, () => database.write((tx) => tokens.countAttempt(tx, 'oauth-state', token, 5))),
      )
      expect(attempts.filter(Boolean)).toHaveLength(5)
      expect(await redeem(token)).toBeNull()
      expect(await database.write((tx) => tokens.countAttempt(tx, 'oauth-state', 'unknown', 5))).toBe(false)
    })

    test('[MAIL-22] what was issued for a user can be called back, all or of one purpose', async () => {
      const [state, link, others] = [
        await issue(),
        await issue({ ...about, purpose: 'magic-link' }),
        await issue({ ...about, userId: 'somebody else' }),
      ]
      await database.write((tx) => tokens.removeAll(tx, 'u', 'magic-link'))
      expect(await redeem(link, 'magic-link')).toBeNull()
      expect(await tokens.find(database, 'oauth-state', state)).not.toBeNull()
      await database.write((tx) => tokens.removeAll(tx, 'u'))
      expect(await redeem(state)).toBeNull()
      expect(await redeem(others)).not.toBeNull()
    })

    test('[MAIL-22] what has expired is swept, a bounded number at a time, and nothing else', async () => {
      await tokens.sweep(clock.now() + minute)
      expect(await rows()).toEqual([])
      await database.write(async (tx) => {
        for (let n = 0; n < oneTimeTokensSweptMax + 10; n++) await tokens.issue(tx, about)
      })
      const alive = await issue({ ...about, lifetimeMs: 10 * minute })
      clock.advance(minute)
      expect(await tokens.sweep(clock.now())).toBe(oneTimeTokensSweptMax)
      expect(await tokens.sweep(clock.now())).toBe(10)
      expect(await redeem(alive)).not.toBeNull()
    })
  })
