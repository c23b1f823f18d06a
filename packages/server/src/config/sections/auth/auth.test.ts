import { describe, expect, test } from 'bun:test'
import { parseConfig } from '../../validate.ts'

const rootKey = 'a-root-key-0123456789'
const parse = (auth: unknown, mode: 'development' | 'release' = 'release') =>
  parseConfig({ auth }, { mode, rootKey }).config
const keys = { clientId: 'id', clientSecret: 'secret' }

test('without the section, sign-up is open and no user data is public', () => {
  expect(parse(undefined).auth).toEqual({
    signup: true,
    anonymous: true,
    publicUsers: null,
    redirectUrls: [],
    allowsLocalRedirects: false,
    passwordCharsMin: 8,
    sessionsPerUserMax: 100,
    providers: {},
    mail: null,
    passkeys: null,
  })
  expect(parse({}, 'development').auth.allowsLocalRedirects).toBe(true)
})

test('every option is resolved', () => {
  const read = () => true
  const { auth } = parse({
    signup: false,
    anonymous: false,
    publicUsers: read,
    redirectUrls: ['https://app.example.com', 'https://app.example.com/done?x=1', 'com.example.app:/done'],
    passwordMinLength: 12,
    providers: {
      google: keys,
      microsoft: { ...keys, tenant: 'acme' },
      apple: { clientId: 'id', teamId: 't', keyId: 'k', privateKey: 'pem' },
      'my-own': { issuer: 'https://id.example.com', clientId: 'id', name: 'Acme' },
    },
    mail: {
      from: 'Acme <no-reply@example.com>',
      smtp: { host: 'mail.example.com', port: 465, user: 'u', password: 'p' },
      links: { passwordReset: 'https://app.example.com/reset' },
    },
    passkeys: { rpId: 'example.com', origins: ['https://app.example.com', 'https://example.com'] },
  })
  expect(auth).toMatchObject({ signup: false, anonymous: false, publicUsers: read, passwordCharsMin: 12 })
  expect(Object.keys(auth.providers)).toEqual(['google', 'microsoft', 'apple', 'my-own'])
  expect(auth.mail).toEqual({
    from: 'Acme <no-reply@example.com>',
    smtp: { host: 'mail.example.com', port: 465, secure: true, user: 'u', password: 'p', ca: null },
    appName: null,
    verifiesSignups: false,
    links: { passwordReset: 'https://app.example.com/reset' },
    templates: {},
  })
  for (const part of [auth, auth.redirectUrls, auth.providers.google, auth.mail?.smtp, auth.passkeys?.origins])
    expect(Object.isFrozen(part)).toBe(true)
  expect(auth.passkeys).toEqual({
    rpId: 'example.com',
    rpName: null,
    origins: ['https://app.example.com', 'https://example.com'],
  })
})

test('the table of public users is always stored, and served if it has a read rule', () => {
  const tablesOf = (publicUsers: unknown) => {
    const { namespaces, storedNamespaces } = parse(publicUsers === undefined ? {} : { publicUsers })
    return [namespaces, storedNamespaces].map((known) => [...(known.get('shared')?.tables.keys() ?? [])])
  }
  expect(tablesOf(undefined)).toEqual([[], ['_users_public']])
  expect(tablesOf(true)).toEqual([['_users_public'], ['_users_public']])
})

describe('invalid options', () => {
  const cases: readonly (readonly [auth: unknown, message: string])[] = [
    [{ singup: false }, 'auth.singup: is not known here. Did you mean "signup"?'],
    [{ publicUsers: 'all' }, 'auth.publicUsers: must be true, false or a function'],
    [{ publicUsers: async () => true }, 'auth.publicUsers: must not be asynchronous'],
    [{ passwordMinLength: 7 }, 'auth.passwordMinLength: must be at least 8'],
    [{ passwordMinLength: 65 }, 'auth.passwordMinLength: must be at most 64'],
    [{ redirectUrls: ['myapp'] }, 'auth.redirectUrls[0]: must be an http or https URL, or a URL with an app scheme'],
    [
      { redirectUrls: ['javascript:alert(1)'] },
      'auth.redirectUrls[0]: must be an http or https URL, or a URL with an app scheme',
    ],
    [
      { redirectUrls: ['https://ok@evil.example'] },
      'auth.redirectUrls[0]: must be an http or https URL, or a URL with an app scheme',
    ],
    [{ providers: { google: { clientId: 'id' } } }, 'auth.providers.google.clientSecret: is missing.'],
    [{ providers: { github: { ...keys, clientId: undefined } } }, 'auth.providers.github.clientId: is missing.'],
    [{ providers: { apple: keys } }, 'auth.providers.apple.teamId: is missing.'],
    [{ providers: { acme: keys } }, 'auth.providers.acme.issuer: is missing.'],
    [{ providers: { '../x': { ...keys, issuer: 'https://x.example' } } }, 'auth.providers["../x"]: must be named'],
    [{ mail: {} }, 'auth.mail.from: is missing'],
    [{ mail: { from: 'a@example.com\nBcc: b@example.com' } }, 'auth.mail.from: must be one line'],
    [{ mail: { from: 'a@example.com', smtp: { host: 'h', port: 0 } } }, 'auth.mail.smtp.port: must be at least 1'],
    [{ mail: { from: 'a@example.com', links: { magicLink: '/x' } } }, 'auth.mail.links.magicLink: must be an http'],
    [{ passkeys: { rpId: 'example.com', origins: [] } }, 'auth.passkeys.origins: must not be empty'],
    [{ passkeys: { rpId: 'example.com', origins: ['https://example.com/'] } }, 'auth.passkeys.origins[0]: must be an'],
    [
      { passkeys: { rpId: 'example.com', origins: ['https://badexample.com'] } },
      'auth.passkeys.origins[0]: must be on the domain "example.com"',
    ],
  ]
  for (const [auth, message] of cases)
    test(message, () => {
      expect(() => parse(auth)).toThrow(message)
    })
})
