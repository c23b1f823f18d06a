/** Link targets chosen by a request: `redirectUrl` and `state`. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { mailStateCharsMax } from '../../../src/limits/users.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { auth, newEmail, password, unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth, page } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const redirectUrls = ['https://web.example.org', 'https://other.example.org/exactly?here=1', 'com.example.app:/mail']
const config = { auth: mailAuth(mailbox, { redirectUrls, verifySignups: true }), rateLimits: unlimitedRates }
const state = 'a b/?&=#%'

describeServer('links in mails', { config, mode: 'release' }, (server) => {
  let email: string
  let headers: Record<string, string>
  beforeEach(async () => {
    email = newEmail()
    const { body } = await server.anonymous.post(`${auth}/signup`, { email, password })
    headers = { authorization: `Bearer ${body.accessToken}` }
    await mailbox.next(email)
  })

  /** Every request that has a link mailed, with where it goes and what its page is called. */
  const requests = [
    ['signin/magic-link', 'magic-link', () => ({ email }), () => email],
    ['request-password-reset', 'reset-password', () => ({ email }), () => email],
    ['request-email-verification', 'verify-email', () => ({}), () => email],
    ['change-email', 'verify-email-change', () => ({ newEmail: `x${email}`, password }), () => `x${email}`],
    ['signup', 'verify-email', () => ({ email: `y${email}`, password }), () => `y${email}`],
  ] as const
  const ask = (path: string, body: object) => {
    // With a token a sign-up would be for the anonymous user whose it is.
    return server.anonymous.post(`${auth}/${path}`, body, path === 'signup' ? {} : headers)
  }
  async function linkTo(to: string): Promise<URL> {
    const { text } = await mailbox.next(to)
    return new URL(/^(?:https|com\.example\.app):\S+token=\S+$/m.exec(text)?.[0] ?? '')
  }

  for (const [path, type, bodyOf, recipient] of requests) {
    test(`[MAIL-25] ${path} leads to an allowed page and hands back the state`, async () => {
      const redirectUrl = 'https://web.example.org/done?tab=2'
      expect((await ask(path, { ...bodyOf(), redirectUrl, state })).status).toBeLessThan(300)
      const link = await linkTo(recipient())
      expect(link.origin + link.pathname).toBe('https://web.example.org/done')
      const { token, ...rest } = Object.fromEntries(link.searchParams)
      expect(token).toMatch(/^[\w-]{43}$/)
      expect(rest).toEqual({ tab: '2', type, state })
    })

    test(`[MAIL-25] ${path} leads nowhere that is not allowed, and takes no broken state`, async () => {
      const elsewhere = [
        'https://evil.example',
        'https://web.example.org.evil.example',
        'http://web.example.org',
        'https://web.example.org@evil.example',
        'https://other.example.org/exactly',
        '//web.example.org',
        'javascript:alert(1)',
        `https://web.example.org/${'x'.repeat(2048)}`,
        'http://localhost:3000',
        '',
      ]
      const before = mailbox.received.length
      for (const redirectUrl of elsewhere)
        expectRefusal(await ask(path, { ...bodyOf(), redirectUrl }), 400, 'redirectUrl')
      for (const wrong of ['', 'x'.repeat(mailStateCharsMax + 1), 'a\nb', 'ü', 7])
        expectRefusal(await ask(path, { ...bodyOf(), state: wrong }), 400, 'state')
      await server.restart()
      expect(mailbox.received.length).toBe(before)
    })
  }

  test('[MAIL-25] a state alone comes back on the configured page', async () => {
    await ask('signin/magic-link', { email, state })
    const link = await linkTo(email)
    expect(link.origin + link.pathname).toBe(page('magic'))
    expect(link.searchParams.get('state')).toBe(state)
    expect(link.searchParams.has('type')).toBe(false)
  })

  test('[MAIL-25] an app’s own scheme, a page with a query, and the longest of each arrive whole', async () => {
    const longest = `https://web.example.org/${'p'.repeat(2000)}`
    for (const redirectUrl of ['com.example.app:/mail', 'https://other.example.org/exactly?here=1', longest]) {
      const most = '%'.repeat(mailStateCharsMax)
      const asked = await server.anonymous.post(`${auth}/signin/magic-link`, { email, redirectUrl, state: most })
      expect(asked.status).toBe(200)
      const link = await linkTo(email)
      expect(link.href.startsWith(redirectUrl)).toBe(true)
      expect(link.searchParams.get('state')).toBe(most)
      const signedIn = await server.anonymous.post(`${auth}/verify-magic-link`, {
        token: link.searchParams.get('token'),
      })
      expect(signedIn.status).toBe(200)
    }
  })

  test('[MAIL-19] asks for a verification without any body, or with an empty one', async () => {
    for (const body of [undefined, {}]) {
      expect((await ask('request-email-verification', body as object)).status).toBe(200)
      expect((await linkTo(email)).searchParams.has('state')).toBe(false)
    }
    expectRefusal(await ask('request-email-verification', { email }), 400, 'email')
  })
})
