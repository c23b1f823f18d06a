import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { contentHeaders, isPassive, normalizeType, sniffImage } from './content.ts'

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (one) => one.charCodeAt(0))

describe('sniffImage', () => {
  test.each([
    ['\x89PNG\r\n\x1a\n....', 'image/png'],
    ['\xff\xd8\xff\xe0', 'image/jpeg'],
    ['GIF87a', 'image/gif'],
    ['GIF89a/*<script>', 'image/gif'],
    ['RIFF....WEBPVP8 ', 'image/webp'],
    ['\0\0\0\x1cftypavif', 'image/avif'],
    ['\0\0\0\x1cftypavis', 'image/avif'],
    [`BM${'.'.repeat(12)}\x28\0\0\0`, 'image/bmp'],
    ['BM is how this text begins, no more', null],
    ['RIFF....WAVEfmt ', null],
    ['\0\0\0\x1cftypisom', null],
    ['<svg xmlns="http://www.w3.org/2000/svg"/>', null],
    ['<!doctype html>', null],
    ['', null],
  ])('%j is %s', (head, type) => expect(sniffImage(bytes(head))).toBe(type))
})

describe('normalizeType', () => {
  test.each([
    ['image/PNG', 'image/png'],
    [' text/html ; charset=utf-8', 'text/html'],
    ['application/vnd.a+json', 'application/vnd.a+json'],
  ])('%j is %s', (text, type) => expect(normalizeType(text)).toBe(type))

  test.each([
    '',
    'x',
    '/',
    'a/',
    '/b',
    'a/b/c',
    'image/png, text/html',
    'a b/c',
    'text/\u0440lain',
    'a/b\r\nX: y',
    `a/${'b'.repeat(200)}`,
    null,
    undefined,
  ])('%j is no type', (text) => expect(normalizeType(text)).toBe('application/octet-stream'))
})

test('whatever type and name a file has, nothing active is shown and no header is broken', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), (text, key) => {
      if (!key.isWellFormed()) return
      const type = normalizeType(text)
      const headers = contentHeaders(key, type)
      expect(headers['Content-Type'] === type && isPassive(type)).toBe(!('Content-Security-Policy' in headers))
      if (!isPassive(type)) expect(headers['Content-Type']).toBe('application/octet-stream')
      expect(headers['Content-Disposition']).toMatch(
        /^(?:inline|attachment); filename="[A-Za-z0-9._-]*"(?:; filename\*=UTF-8''[\w.~!%-]*)?$/,
      )
    }),
  )
})
