import { describe, expect, test } from 'bun:test'
import { pbkdf2Sync } from 'node:crypto'
import { findHash, hashPassword, verifyPassword } from './password-hash.ts'

const cheap = { memoryKiB: 8, passes: 1 }
const salt = Buffer.from('0123456789abcdef')
const pbkdf2Of = (password: string, iterations = 2, bytes = 32): string =>
  `pbkdf2:sha256:${iterations}:${salt.toString('base64')}:${pbkdf2Sync(password, salt, iterations, bytes, 'sha256').toString('base64')}`
const bcrypt = await Bun.password.hash('pässword', { algorithm: 'bcrypt', cost: 4 })

describe('verifying', () => {
  test('each form fits its password and no other', async () => {
    const hashes = [
      await hashPassword('pässword', cheap),
      bcrypt,
      ...[16, 32, 64].map((bytes) => pbkdf2Of('pässword', 2, bytes)),
    ]
    for (const hash of hashes) {
      expect(await verifyPassword('pässword', hash)).toBe(true)
      for (const other of ['', 'password', 'pässword ', 'PÄSSWORD'])
        expect(await verifyPassword(other, hash)).toBe(false)
    }
  })

  test('bcrypt is the same under its three names, and looks at 72 bytes', async () => {
    for (const prefix of ['$2a$', '$2b$', '$2y$'])
      expect(await verifyPassword('pässword', prefix + bcrypt.slice(4))).toBe(true)
    const long = await Bun.password.hash('x'.repeat(72), { algorithm: 'bcrypt', cost: 4 })
    expect(await verifyPassword('x'.repeat(80), long)).toBe(true)
    expect(await verifyPassword('x'.repeat(71), long)).toBe(false)
  })

  test('argon2id looks at all of a password', async () => {
    const hash = await hashPassword('x'.repeat(200), cheap)
    expect(await verifyPassword('x'.repeat(199), hash)).toBe(false)
  })

  test('salts differ', async () => {
    expect(await hashPassword('same', cheap)).not.toBe(await hashPassword('same', cheap))
  })
})

describe('what is no hash fits nothing', () => {
  const [, , , saltText = '', hashText = ''] = pbkdf2Of('').split(':')
  const texts: readonly string[] = [
    '',
    '*',
    'password',
    '$2b$',
    bcrypt.slice(0, -1),
    `${bcrypt} `,
    bcrypt.replace('$2b$', '$2x$'),
    bcrypt.replace('$04$', '$03$'),
    bcrypt.replace('$04$', '$4$'),
    `${bcrypt.slice(0, -1)}\0`,
    '$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHQ',
    '$argon2id$v=16$m=8,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHQ',
    `pbkdf2:sha256:0:${saltText}:${hashText}`,
    `pbkdf2:sha256:-1:${saltText}:${hashText}`,
    `pbkdf2:sha256:1e3:${saltText}:${hashText}`,
    `pbkdf2:sha256:02:${saltText}:${hashText}`,
    `pbkdf2:sha512:2:${saltText}:${hashText}`,
    `pbkdf2:sha256:2::${hashText}`,
    `pbkdf2:sha256:2:${saltText}:`,
    `pbkdf2:sha256:2:${saltText}:${hashText.slice(0, 8)}`,
    ...[15, 65].map((bytes) => pbkdf2Of('', 2, bytes)),
    `pbkdf2:sha256:2:${saltText}:${hashText}:`,
    `pbkdf2:sha256:2:!!!!:${hashText}`,
    `pbkdf2:sha256:2:${'A'.repeat(400)}:${hashText}`,
  ]
  for (const text of texts)
    test(JSON.stringify(text.slice(0, 60)), async () => {
      expect(findHash(text)).toBeNull()
      for (const password of ['', 'pässword']) expect(await verifyPassword(password, text)).toBe(false)
    })
})

test('a hash says what it costs', () => {
  expect(findHash(bcrypt)).toEqual({ kind: 'bcrypt', cost: 4 })
  expect(findHash(bcrypt.replace('$04$', '$31$'))).toMatchObject({ cost: 31 })
  expect(findHash(pbkdf2Of('x', 5_000_001))).toMatchObject({ kind: 'pbkdf2', iterations: 5_000_001 })
})
