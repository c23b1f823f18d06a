/** Second factors under concurrency: single use holds on one server and on several nodes. */
import { beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import type { Answer } from '../../harness/client.ts'
import { describeServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { codeOf, type PersonWithApp, signUp, signUpWithApp } from '../../harness/users/person.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
/** More than the tries of one user, so that the bound shows beside the winner. */
const racers = 50
const triesMax = 30

const race = <T>(run: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: racers }, (_, n) => run(n)))

/** Statuses to how many answers have them. */
function tally(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

describeServer('second factors in a race', { config, clock }, (server) => {
  let owner: PersonWithApp
  beforeEach(async () => {
    owner = await signUpWithApp(server, clock)
  })
  const sessions = async () => (await owner.client.get('/api/auth/sessions')).body.sessions.length
  const factors = async () => (await owner.client.get('/api/auth/mfa/factors')).body

  test('[MFA-5] one code with many tickets signs in once', async () => {
    const tickets: string[] = []
    for (let n = 0; n < racers; n++) tickets.push(await owner.ticket())
    const before = await sessions()
    const code = owner.code(1)
    const answers = await race((n) => server.anonymous.post('/api/auth/mfa/verify', { mfaTicket: tickets[n], code }))
    expect(tally(answers)).toEqual({ 200: 1, 401: triesMax - 1, 429: racers - triesMax })
    expect(await sessions()).toBe(before + 1)
  })

  test('[MFA-6] one recovery code with many tickets signs in once', async () => {
    const tickets: string[] = []
    for (let n = 0; n < racers; n++) tickets.push(await owner.ticket())
    const before = await sessions()
    const [recoveryCode] = owner.recoveryCodes
    const answers = await race((n) =>
      server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket: tickets[n], recoveryCode }),
    )
    expect(tally(answers)).toEqual({ 200: 1, 401: triesMax - 1, 429: racers - triesMax })
    expect(await sessions()).toBe(before + 1)
    expect((await factors()).recoveryCodesLeft).toBe(7)
  })

  test('[MFA-7] one ticket with everything that is good signs in once', async () => {
    const mfaTicket = await owner.ticket()
    const before = await sessions()
    const codes = owner.recoveryCodes
    const answers = await race((n) =>
      n % 2 === 0
        ? server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code: owner.code(1) })
        : server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket, recoveryCode: codes[n % codes.length] }),
    )
    expect(tally(answers)[200]).toBe(1)
    expect(await sessions()).toBe(before + 1)
    expect((await factors()).recoveryCodesLeft).toBeGreaterThanOrEqual(7)
  })

  test('[MFA-7] of many wrong codes on one ticket at once five are looked at', async () => {
    const mfaTicket = await owner.ticket()
    const answers = await race(() => server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code: '000000' }))
    expect(answers.filter(({ body }) => body.message === 'Invalid code')).toHaveLength(5)
    expect(tally(answers)[200]).toBeUndefined()
  })

  test('[MFA-8] tries at the same time are counted like others', async () => {
    const tickets: string[] = []
    for (let n = 0; n < racers / 5; n++) tickets.push(await owner.ticket())
    const answers = await race((n) =>
      server.anonymous.post('/api/auth/mfa/verify', { mfaTicket: tickets[n % tickets.length], code: '000000' }),
    )
    expect(tally(answers)).toEqual({ 401: triesMax, 429: racers - triesMax })
  })

  test('[MFA-2] enrolling many times at once leaves one factor, whose secret is the one told with it', async () => {
    const person = await signUp(server)
    const answers = await race(() => person.client.post('/api/auth/mfa/totp/enroll', undefined))
    expect(tally(answers)).toEqual({ 200: racers })
    const listed = (await person.client.get('/api/auth/mfa/factors')).body
    expect([listed.factors.length, listed.recoveryCodesLeft]).toEqual([1, 8])
    const told = answers.filter(({ body }) => body.factorId === listed.factors[0].id)
    expect(told).toHaveLength(1)
  })

  test('[MFA-2, MFA-5] verifying an enrolment many times at once puts it in force once', async () => {
    const person = await signUp(server)
    const { factorId, secret } = (await person.client.post('/api/auth/mfa/totp/enroll', undefined)).body
    const code = codeOf(secret, clock.now())
    const answers = await race(() => person.client.post('/api/auth/mfa/totp/verify', { factorId, code }))
    expect(tally(answers)).toEqual({ 200: 1, 409: racers - 1 })
  })

  test('[MFA-9] removing many times at once happens once', async () => {
    const answers = await race(() =>
      owner.client.request('DELETE', '/api/auth/mfa/totp', { body: { code: owner.code(1) } }),
    )
    expect(tally(answers)).toEqual({ 200: 1, 404: triesMax - 1, 429: racers - triesMax })
    expect(await factors()).toEqual({ factors: [], recoveryCodesLeft: 0 })
  })
})
