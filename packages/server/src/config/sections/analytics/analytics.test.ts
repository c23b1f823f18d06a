/** The section `analytics`. */
import { expect, test } from 'bun:test'
import { findMistakes, parseConfig } from '../../validate.ts'

const rootKey = 'root-key-0123456789'
const parse = (analytics: unknown) => parseConfig({ analytics }, { mode: 'release', rootKey }).config.analytics

test('by default every caller may send any event, and requests are counted', () => {
  const requestRows = { retentionMs: 7 * 24 * 60 * 60 * 1000, bytesMax: 1024 ** 3 }
  const rawEvents = { bytesMax: 4 * 1024 ** 3 }
  const usual = { events: null, anonymous: true, requestLog: true, requestRows, rawEvents }
  expect(parseConfig({}, { mode: 'release', rootKey }).config.analytics).toEqual(usual)
  expect(parse({})).toEqual(usual)
})

test('what is written is taken', () => {
  expect(parse({ events: ['a', 'b'], anonymous: false, requestLog: false })).toEqual({
    events: new Set(['a', 'b']),
    anonymous: false,
    requestLog: false,
    requestRows: { retentionMs: 7 * 24 * 60 * 60 * 1000, bytesMax: 1024 ** 3 },
    rawEvents: { bytesMax: 4 * 1024 ** 3 },
  })
  expect(parse({ rawEvents: { maxSize: '2mb' } }).rawEvents).toEqual({ bytesMax: 2 * 1024 ** 2 })
  expect(parse({ requestLog: { retention: '1d', maxSize: '5mb' } })).toMatchObject({
    requestLog: true,
    requestRows: { retentionMs: 24 * 60 * 60 * 1000, bytesMax: 5 * 1024 ** 2 },
  })
})

test.each([
  [[], 'analytics: must be an object, not a list'],
  [{ event: ['a'] }, 'analytics.event: is not known here. Did you mean "events"?'],
  [{ events: 'a' }, 'analytics.events: must be a list, not a string'],
  [{ events: [] }, 'analytics.events: must not be empty'],
  [{ events: ['a', 1] }, 'analytics.events[1]: must be text, not a number'],
  [{ events: [''] }, 'analytics.events[0]: must have at least 1 characters'],
  [{ events: ['x'.repeat(201)] }, 'analytics.events[0]: must have at most 200 characters'],
  [{ anonymous: 'no' }, 'analytics.anonymous: must be true or false, not a string'],
  [{ requestLog: { retention: '91d' } }, 'analytics.requestLog.retention: must be at most 90d'],
  [{ requestLog: { maxSize: '1kb' } }, 'analytics.requestLog.maxSize: must be at least 1mb'],
  [{ rawEvents: { maxSize: '1kb' } }, 'analytics.rawEvents.maxSize: must be at least 1mb'],
  [{ requestLog: 1 }, 'analytics.requestLog: must be true, false or an object'],
])('%j is refused', (analytics, mistake) => {
  expect(findMistakes({ analytics }, rootKey)).toEqual([mistake])
})
