/** The section `analytics`. */
import { expect, test } from 'bun:test'
import { findMistakes, parseConfig } from './validate.ts'

const rootKey = 'root-key-0123456789'
const parse = (analytics: unknown) => parseConfig({ analytics }, { mode: 'release', rootKey }).config.analytics

test('left out, any event from anybody is taken and requests are counted', () => {
  const usual = { events: null, anonymous: true, requestLog: true }
  expect(parseConfig({}, { mode: 'release', rootKey }).config.analytics).toEqual(usual)
  expect(parse({})).toEqual(usual)
})

test('what is written is taken', () => {
  expect(parse({ events: ['a', 'b'], anonymous: false, requestLog: false })).toEqual({
    events: new Set(['a', 'b']),
    anonymous: false,
    requestLog: false,
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
  [{ requestLog: 1 }, 'analytics.requestLog: must be true or false, not a number'],
])('%j is refused', (analytics, mistake) => {
  expect(findMistakes({ analytics }, rootKey)).toEqual([mistake])
})
