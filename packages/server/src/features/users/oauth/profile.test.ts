import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  findAppleName,
  type OAuthProfile,
  parseDiscordProfile,
  parseGithubProfile,
  parseOidcProfile,
} from './profile.ts'

const claims = { iss: 'https://issuer.example', sub: 'p1', email: 'Ada@Example.com', email_verified: true }

describe('a profile', () => {
  test('[OAUTH-8] has the normalized email, and the issuer in its subject', () => {
    expect(parseOidcProfile({ ...claims, name: ' Ada\u0000\n ', picture: 'https://images.example/a b' })).toEqual({
      subject: 'https://issuer.example p1',
      email: 'ada@example.com',
      isEmailVerified: true,
      displayName: 'Ada',
      avatarUrl: 'https://images.example/a%20b',
    })
  })

  test.each([
    [true, true],
    ['true', true],
    [false, false],
    ['false', false],
    [undefined, false],
    [null, false],
    ['yes', false],
    [[true], false],
    [{}, false],
  ])('[OAUTH-8] an email_verified of %j is %j', (email_verified, isEmailVerified) => {
    expect(parseOidcProfile({ ...claims, email_verified })).toMatchObject({ isEmailVerified })
  })

  test('[OAUTH-8] an invalid address is dropped, even if the provider calls it verified', () => {
    for (const email of [
      undefined,
      null,
      '',
      'ada',
      'a@b@c.example',
      'ada@example.com\r\nBcc: eve@example.com',
      7,
      ['a@b.example'],
      {},
    ])
      expect(parseOidcProfile({ ...claims, email })).toMatchObject({ email: null, isEmailVerified: false })
  })

  test('[OAUTH-18] for Microsoft only xms_edov marks an email as verified', () => {
    const profile = (more: object) => parseOidcProfile({ ...claims, ...more }, 'xms_edov').isEmailVerified
    expect([profile({}), profile({ xms_edov: false }), profile({ xms_edov: '0' })]).toEqual([false, false, false])
    expect([profile({ xms_edov: true }), profile({ xms_edov: '1' }), profile({ xms_edov: 1 })]).toEqual([
      true,
      true,
      true,
    ])
    expect(parseOidcProfile({ ...claims, email_verified: false, xms_edov: true }).isEmailVerified).toBe(false)
  })

  test('[OAUTH-6] an invalid subject rejects the profile', () => {
    for (const sub of [undefined, null, '', 7, {}, 'x'.repeat(600), 'a\u0000b', 'a\nb', '\u00e4'])
      expect(() => parseOidcProfile({ ...claims, sub })).toThrow()
    for (const id of [undefined, null, '1', 0, -1, 1.5, Number.NaN])
      expect(() => parseGithubProfile({ id, login: 'x' }, [])).toThrow()
    for (const id of [undefined, 7, '', 'x', '1 OR 1=1', '1'.repeat(30)])
      expect(() => parseDiscordProfile({ id })).toThrow()
    expect(() => parseGithubProfile({ id: 1, login: 'x' }, { message: 'no' })).toThrow()
  })

  test('[OAUTH-18] for GitHub has the primary address and never the public one', () => {
    const user = { id: 7, login: 'ada', name: '', email: 'public@example.com', avatar_url: 'http://plain.example/a' }
    const other = { email: 'other@example.com', primary: false, verified: true }
    const primary = { email: 'Ada@example.com', primary: true, verified: false }
    expect(parseGithubProfile(user, [other, { ...primary, verified: true }])).toEqual({
      subject: '7',
      email: 'ada@example.com',
      isEmailVerified: true,
      displayName: 'ada',
      avatarUrl: null,
    })
    expect(parseGithubProfile(user, [other, primary])).toMatchObject({ isEmailVerified: false })
    expect(parseGithubProfile(user, [other])).toMatchObject({ email: null, isEmailVerified: false })
  })

  test('[OAUTH-18] for Discord has an avatar only if the hash is valid', () => {
    const user = { id: '80351110224678912', username: 'nelly', email: 'n@example.com', verified: true }
    expect(parseDiscordProfile({ ...user, global_name: 'Nelly', avatar: 'a_1f' })).toEqual({
      subject: '80351110224678912',
      email: 'n@example.com',
      isEmailVerified: true,
      displayName: 'Nelly',
      avatarUrl: 'https://cdn.discordapp.com/avatars/80351110224678912/a_1f.png',
    })
    for (const avatar of ['../../x', 'a b', '', null, {}])
      expect(parseDiscordProfile({ ...user, avatar }).avatarUrl).toBeNull()
    for (const verified of ['true', 1, null, undefined])
      expect(parseDiscordProfile({ ...user, verified }).isEmailVerified).toBe(false)
  })

  test('[OAUTH-11] for Apple takes the name from the user field of the callback', () => {
    expect(findAppleName('{"name":{"firstName":"Ada","lastName":"Lovelace"},"email":"x@example.com"}')).toBe(
      'Ada Lovelace',
    )
    expect(findAppleName('{"name":{"firstName":"Ada"}}')).toBe('Ada')
    for (const user of [undefined, '', '{', '[]', 'null', '{"name":"Ada"}', '{"name":{"firstName":{}}}'])
      expect(findAppleName(user)).toBeNull()
  })

  test('[OAUTH-6] stays within its bounds for any response', () => {
    const anything = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3000 }),
      fc.jsonValue(),
      fc.webUrl(),
      fc.emailAddress(),
    )
    fc.assert(
      fc.property(anything, anything, anything, anything, (email, name, picture, email_verified) => {
        const profile: OAuthProfile = parseOidcProfile({ ...claims, email, name, picture, email_verified })
        expect([...(profile.displayName ?? '')].length).toBeLessThanOrEqual(200)
        expect(profile.displayName ?? '').not.toMatch(/\p{Cc}/u)
        expect((profile.displayName ?? '').isWellFormed()).toBe(true)
        expect(profile.avatarUrl ?? 'https:').toStartWith('https:')
        expect(profile.isEmailVerified && profile.email === null).toBe(false)
      }),
    )
  })
})
