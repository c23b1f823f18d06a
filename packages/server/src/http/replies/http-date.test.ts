import { expect, test } from 'bun:test'
import { parseHttpDate } from './http-date.ts'

const atMs = Date.UTC(1994, 10, 6, 8, 49, 37)

test.each([
  ['Sun, 06 Nov 1994 08:49:37 GMT', atMs],
  ['Sunday, 06-Nov-94 08:49:37 GMT', atMs],
  ['Sun Nov  6 08:49:37 1994', atMs],
  ['Thu, 29 Feb 2024 00:00:00 GMT', Date.UTC(2024, 1, 29)],
  ['Fri, 06-Nov-20 08:49:37 GMT', null],
  ['Friday, 06-Nov-20 08:49:37 GMT', Date.UTC(2020, 10, 6, 8, 49, 37)],
])('%p is read', (text, expected) => expect(parseHttpDate(text)).toBe(expected))

test.each([
  '1 GMT',
  'x 1994 GMT',
  '1994-11-06T08:49:37Z',
  'Mon, 06 Nov 1994 08:49:37 GMT',
  'Sun, 6 Nov 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 08:49:37 UTC',
  'Sun, 06 Nov 1994 08:49:37 +0000',
  'Sun, 06 Nov 1994 08:49:37 gmt',
  'Sun, 06 Nov 1994 24:00:00 GMT',
  'Sun, 06 Nov 1994 08:60:37 GMT',
  'Wed, 31 Nov 1994 08:49:37 GMT',
  'Thu, 29 Feb 2023 00:00:00 GMT',
  'Sun, 00 Nov 1994 08:49:37 GMT',
  'Sun, 06 Nop 1994 08:49:37 GMT',
  ' Sun, 06 Nov 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 08:49:37 GMT ',
  'Sun, 06 Nov 1994',
  '',
])('%p is not a date', (text) => expect(parseHttpDate(text)).toBeNull())
