import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { elementsIn, textIn } from './xml.ts'

const page = `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix></Prefix>
<NextContinuationToken>a&amp;b&#61;&#x2B;</NextContinuationToken>
<Contents><Key>one</Key><ETag>&quot;e1&#34;</ETag></Contents>
<Contents><Key>two</Key></Contents></ListBucketResult>`

test('elements are found by their name', () => {
  expect([...elementsIn(page, 'Contents')].map((element) => textIn(element, 'Key'))).toEqual(['one', 'two'])
  expect([...elementsIn(page, 'Upload')]).toEqual([])
  expect(textIn(page, 'Prefix')).toBe('')
  expect(textIn(page, 'Nothing')).toBeNull()
})

test('entities are decoded', () => {
  expect(textIn(page, 'NextContinuationToken')).toBe('a&b=+')
  expect(textIn(page, 'ETag')).toBe('"e1"')
  expect(textIn('<a>&amp;lt; &nope; &#1114112; &#x110000;</a>', 'a')).toBe('&lt; &nope; &#1114112; &#x110000;')
})

test('any text survives encoding and decoding', () => {
  const written = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => textIn(`<a>${written(text)}</a>`, 'a') === text))
})

test.each(['', '<', '<Key', '<Key>cut', '</Key><Key>', '<Key>'.repeat(1000)])('%j holds no element', (text) => {
  expect(textIn(text, 'Key')).toBeNull()
  expect([...elementsIn(text, 'Key')]).toEqual([])
})

test('a truncated element is not returned', () => {
  expect([...elementsIn('<Contents>1</Contents><Contents>2</Con', 'Contents')]).toEqual(['1'])
})

test('a long malicious response is parsed in linear time', () => {
  const text = '<Key>&#'.repeat(100_000)
  expect(textIn(text, 'Key')).toBeNull()
  expect(textIn(`<a>${'&#1234567'.repeat(100_000)}</a>`, 'a')).toHaveLength(900_000)
})
