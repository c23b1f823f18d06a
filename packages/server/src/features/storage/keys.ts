/** Keys of objects: which texts are one. Everything that takes a key from a request reads it here. */
import { invalidField } from '../../errors.ts'
import { objectKeyBytesMax } from '../../limits/storage.ts'

const controlCharacter = /\p{Cc}/u

/** The error of a key, or null. */
export function findKeyMistake(text: string): string | null {
  if (text === '') return 'must not be empty'
  if (!text.isWellFormed() || Buffer.byteLength(text) > objectKeyBytesMax)
    return `must have at most ${objectKeyBytesMax} bytes of UTF-8`
  if (controlCharacter.test(text)) return 'must not have control characters'
  const segments = text.split('/')
  if (segments.includes('')) return 'must not begin or end with a slash, or have two in a row'
  return segments.includes('.') || segments.includes('..') ? 'must not have "." or ".." between slashes' : null
}

/** Returns a valid key. Throws 400 naming `field`. */
export function parseKey(text: string, field = 'key'): string {
  const mistake = findKeyMistake(text)
  if (mistake !== null) throw invalidField(field, 'pattern', mistake)
  return text
}

/** Escapes a key for a path, including its slashes, so that it matches no other route. */
export const keyInPath = (key: string): string =>
  encodeURIComponent(key).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
