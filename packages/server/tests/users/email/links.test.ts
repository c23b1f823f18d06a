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

  /** Every request that mails a link: its path, the type of the link, its body, and the recipient. */
  const requests = [
    ['signin/magic-link', 'magic-link', () => ({ email }), () => email],
    ['request-password-reset', 'reset-password', () => ({ email }), () => email],
    ['request-email-verification', 'verify-email', () => ({}), () => email],
    ['change-email', 'verify-email-change', () => ({ newEmail: `x${email}`, password }), () => `x${email}`],
    ['signup', 'verify-email', () => ({ email: `y${email}`, password }), () => `y${email}`],
  ] as const
  const send = (path: string, body: object) => {
    // With a token, a sign-up would convert the anonymous user of the token.
    return server.anonymous.post(`${auth}/${path}`, body, path === 'signup' ? {} : headers)
  }
  async function linkTo(to: string): Promise<URL> {
    const { text } = await mailbox.next(to)
    return new URL(/^(?:https|com\.example\.app):\S+token=\S+$/m.exec(text)?.[0] ?? '')
  }

  for (const [path, type, bodyOf, recipient] of requests) {
    test(`[MAIL-25] the link of ${path} opens an allowed page with the state`, async () => {
      const redirectUrl = 'https://web.example.org/done?tab=2'
      expect((await send(path, { ...bodyOf(), redirectUrl, state })).status).toBeLessThan(300)
      const link = await linkTo(recipient())
      expect(link.origin + link.pathname).toBe('https://web.example.org/done')
      const { token, ...rest } = Object.fromEntries(link.searchParams)
      expect(token).toMatch(/^[\w-]{43}$/)
      expect(rest).toEqual({ tab: '2', type, state })
    })

    test(`[MAIL-25] ${path} refuses a redirectUrl that is not allowed and a malformed state`, async () => {
      const notAllowed = [
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
      for (const redirectUrl of notAllowed)
        expectRefusal(await send(path, { ...bodyOf(), redirectUrl }), 400, 'redirectUrl')
      for (const wrong of ['', 'x'.repeat(mailStateCharsMax + 1), 'a\nb', 'ü', 7])
        expectRefusal(await send(path, { ...bodyOf(), state: wrong }), 400, 'state')
      await server.restart()
      expect(mailbox.received.length).toBe(before)
    })
  }

  test('[MAIL-25] a state without a redirectUrl is returned to the configured page', async () => {
    await send('signin/magic-link', { email, state })
    const link = await linkTo(email)
    expect(link.origin + link.pathname).toBe(page('magic'))
    expect(link.searchParams.get('state')).toBe(state)
    expect(link.searchParams.has('type')).toBe(false)
  })

  test('[MAIL-25] an app scheme, a page with a query, and the longest URL and state are kept unchanged', async () => {
    const longest = `https://web.example.org/${'p'.repeat(2000)}`
    for (const redirectUrl of ['com.example.app:/mail', 'https://other.example.org/exactly?here=1', longest]) {
      const longestState = '%'.repeat(mailStateCharsMax)
      const request = { email, redirectUrl, state: longestState }
      expect((await server.anonymous.post(`${auth}/signin/magic-link`, request)).status).toBe(200)
      const link = await linkTo(email)
      expect(link.href.startsWith(redirectUrl)).toBe(true)
      expect(link.searchParams.get('state')).toBe(longestState)
      const signedIn = await server.anonymous.post(`${auth}/verify-magic-link`, {
        token: link.searchParams.get('token'),
      })
      expect(signedIn.status).toBe(200)
    }
  })

  test('[MAIL-19] a verification is requested without a body or with an empty one', async () => {
    for (const body of [undefined, {}]) {
      expect((await send('request-email-verification', body as object)).status).toBe(200)
      expect((await linkTo(email)).searchParams.has('state')).toBe(false)
    }
    expectRefusal(await send('request-email-verification', { email }), 400, 'email')
  })
})
