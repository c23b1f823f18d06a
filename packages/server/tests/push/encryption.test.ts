import { expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import fc from 'fast-check'
import { encryptWebPush } from '../../src/features/push/providers/web-push-encryption.ts'
import { decryptWebPush, newBrowser } from '../harness/push/web-push.ts'

const bytes = (text: string): Buffer => Buffer.from(text, 'base64url')

test('[PUSH-WEB-2] the example of RFC 8291 is reproduced exactly', () => {
  const sender = createECDH('prime256v1')
  sender.setPrivateKey(bytes('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'))
  const keys = {
    p256dh: bytes('BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'),
    auth: bytes('BTBZMqHH6r4Tts7J_aSIgg'),
  }
  const salt = bytes('DGv6ra1nlYgDCS1FRnbzlw')
  const body = encryptWebPush('When I grow up, I want to be a watermelon', keys, { sender, salt })
  expect(Buffer.from(body).toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

test('[PUSH-WEB-2] a browser can decrypt the message, and each encryption differs', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
      const browser = newBrowser()
      const [one, other] = [encryptWebPush(text, browser.keys), encryptWebPush(text, browser.keys)]
      expect(decryptWebPush(one, browser)).toBe(text)
      expect(decryptWebPush(other, browser)).toBe(text)
      expect(Buffer.from(one).equals(Buffer.from(other))).toBe(false)
    }),
    { numRuns: 50 },
  )
})

test('[PUSH-WEB-2] a key that is not a point of the curve is an error', () => {
  const { auth } = newBrowser().keys
  expect(() => encryptWebPush('x', { p256dh: Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)]), auth })).toThrow()
})
