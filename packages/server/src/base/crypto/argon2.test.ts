import { describe, expect, test } from 'bun:test'
import { type Argon2, argon2, loadNativeArgon2, runtimeArgon2 } from './argon2.ts'

const cost = { memoryKiB: 256, passes: 2 }

/** Password, salt and hash of the test program of the reference implementation, version 19, one lane. */
const vectors = [
  '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
  '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
] as const

async function implementations(): Promise<Readonly<Record<string, Argon2>>> {
  const native = await loadNativeArgon2()
  if (native === null) throw new Error('The library is not installed')
  return { native, runtime: runtimeArgon2 }
}

describe('argon2id', () => {
  test('both implementations verify the vectors of the reference implementation', async () => {
    for (const one of Object.values(await implementations()))
      for (const vector of vectors) {
        expect(await one.verify('password', vector)).toBe(true)
        expect(await one.verify('passwore', vector)).toBe(false)
      }
  })

  test('each verifies the hashes of the other', async () => {
    const both = Object.values(await implementations())
    for (const password of ['pässword', 'x'.repeat(1000), '密码', '\u0000'])
      for (const maker of both)
        for (const checker of both) {
          const hash = await maker.hash(password, cost)
          expect(hash).toStartWith('$argon2id$v=19$m=256,t=2,p=1$')
          expect(await checker.verify(password, hash)).toBe(true)
          expect(await checker.verify(`${password}x`, hash)).toBe(false)
        }
  })

  test('the library is used where it is installed', async () => {
    expect(await argon2()).not.toBe(runtimeArgon2)
  })
})
