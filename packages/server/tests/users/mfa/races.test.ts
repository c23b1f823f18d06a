/** Second factors under concurrent requests on one server; `nodes.test.ts` covers several nodes. */
import { beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { countStatuses } from '../../harness/client.ts'
import { describeServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { codeOf, signUp, signUpWithApp, type TestUserWithApp } from '../../harness/users/test-user.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
/** More than a user may attempt, so that both the single success and the rate limit show. */
const concurrentUses = 50
const attemptsMax = 30

const race = <T>(run: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: concurrentUses }, (_, n) => run(n)))

describeServer('second factors under concurrency', { config, clock }, (server) => {
  let owner: TestUserWithApp
  beforeEach(async () => {
    owner = await signUpWithApp(server, clock)
  })
  const sessions = async () => (await owner.client.get('/api/auth/sessions')).body.sessions.length
  const factors = async () => (await owner.client.get('/api/auth/mfa/factors')).body

  test('[MFA-5] one code used with many tickets concurrently signs in once', async () => {
    const tickets: string[] = []
    for (let n = 0; n < concurrentUses; n++) tickets.push(await owner.ticket())
    const before = await sessions()
    const code = owner.code(1)
    const answers = await race((n) => server.anonymous.post('/api/auth/mfa/verify', { mfaTicket: tickets[n], code }))
    expect(countStatuses(answers)).toEqual({ 200: 1, 401: attemptsMax - 1, 429: concurrentUses - attemptsMax })
    expect(await sessions()).toBe(before + 1)
  })

  test('[MFA-6] one recovery code used with many tickets concurrently signs in once', async () => {
    const tickets: string[] = []
    for (let n = 0; n < concurrentUses; n++) tickets.push(await owner.ticket())
    const before = await sessions()
    const [recoveryCode] = owner.recoveryCodes
    const answers = await race((n) =>
      server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket: tickets[n], recoveryCode }),
    )
    expect(countStatuses(answers)).toEqual({ 200: 1, 401: attemptsMax - 1, 429: concurrentUses - attemptsMax })
    expect(await sessions()).toBe(before + 1)
    expect((await factors()).recoveryCodesLeft).toBe(7)
  })

  test('[MFA-7] one ticket used concurrently with valid codes and recovery codes signs in once', async () => {
    const mfaTicket = await owner.ticket()
    const before = await sessions()
    const codes = owner.recoveryCodes
    const answers = await race((n) =>
      n % 2 === 0
        ? server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code: owner.code(1) })
        : server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket, recoveryCode: codes[n % codes.length] }),
    )
    expect(countStatuses(answers)[200]).toBe(1)
    expect(await sessions()).toBe(before + 1)
    expect((await factors()).recoveryCodesLeft).toBeGreaterThanOrEqual(7)
  })

  test('[MFA-7] of fifty concurrent wrong codes for one ticket five are checked', async () => {
    const mfaTicket = await owner.ticket()
    const answers = await race(() => server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code: '000000' }))
    expect(answers.filter(({ body }) => body.message === 'Invalid code')).toHaveLength(5)
    expect(countStatuses(answers)[200]).toBeUndefined()
  })

  test('[MFA-8] concurrent attempts are counted exactly', async () => {
    const tickets: string[] = []
    for (let n = 0; n < concurrentUses / 5; n++) tickets.push(await owner.ticket())
    const answers = await race((n) =>
      server.anonymous.post('/api/auth/mfa/verify', { mfaTicket: tickets[n % tickets.length], code: '000000' }),
    )
    expect(countStatuses(answers)).toEqual({ 401: attemptsMax, 429: concurrentUses - attemptsMax })
  })

  test('[MFA-2] concurrent enrollments leave one factor, the one of a single response', async () => {
    const person = await signUp(server)
    const answers = await race(() => person.client.post('/api/auth/mfa/totp/enroll', undefined))
    expect(countStatuses(answers)).toEqual({ 200: concurrentUses })
    const listed = (await person.client.get('/api/auth/mfa/factors')).body
    expect(listed.factors).toHaveLength(1)
    expect(listed.recoveryCodesLeft).toBe(8)
    expect(answers.filter(({ body }) => body.factorId === listed.factors[0].id)).toHaveLength(1)
  })

  test('[MFA-2, MFA-5] of fifty concurrent verifications of a factor one succeeds', async () => {
    const person = await signUp(server)
    const { factorId, secret } = (await person.client.post('/api/auth/mfa/totp/enroll', undefined)).body
    const code = codeOf(secret, clock.now())
    const answers = await race(() => person.client.post('/api/auth/mfa/totp/verify', { factorId, code }))
    expect(countStatuses(answers)).toEqual({ 200: 1, 409: concurrentUses - 1 })
  })

  test('[MFA-9] of fifty concurrent removals of a factor one succeeds', async () => {
    const answers = await race(() =>
      owner.client.request('DELETE', '/api/auth/mfa/totp', { body: { code: owner.code(1) } }),
    )
    expect(countStatuses(answers)).toEqual({ 200: 1, 404: attemptsMax - 1, 429: concurrentUses - attemptsMax })
    expect(await factors()).toEqual({ factors: [], recoveryCodesLeft: 0 })
  })
})
