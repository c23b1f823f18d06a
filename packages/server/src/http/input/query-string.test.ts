import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ApiError } from '../../errors.ts'
import { parseQueryString, parseTarget } from './query-string.ts'

describe('parseTarget', () => {
  test.each([
    ['http://host/a/b', '/a/b', ''],
    ['http://host:1/a?b=c', '/a', 'b=c'],
    ['http://host/?', '/', ''],
    ['http://host/a?b=/c?d', '/a', 'b=/c?d'],
    ['http://host/a#b?c', '/a', ''],
    ['http://host/a?b#c', '/a', 'b'],
    ['/a?b=http://c/d', '/a', 'b=http://c/d'],
    ['http://[::1]:80/a', '/a', ''],
  ])('%s', (url, path, query) => {
    expect(parseTarget(url)).toEqual({ path, query })
  })
})

describe('parseQueryString', () => {
  const refusal = (query: string): unknown => {
    try {
      return parseQueryString(query)
    } catch (error) {
      return error instanceof ApiError ? error.data : error
    }
  }
  test.each([
    ['', {}],
    ['a=1', { a: '1' }],
    ['a', { a: '' }],
    ['a=', { a: '' }],
    ['=1', { '': '1' }],
    ['a=b=c', { a: 'b=c' }],
    ['&&a=1&', { a: '1' }],
    ['a=%5B%22x%22%5D&b=1+2&c=%2B', { a: '["x"]', b: '1 2', c: '+' }],
    ['f%69lter=x', { filter: 'x' }],
    ['a=%F0%9F%8E%88', { a: '🎈' }],
    ['constructor=1', { constructor: '1' }],
  ])('%p', (query, parameters) => {
    expect({ ...parseQueryString(query) }).toEqual(parameters as unknown as Record<string, string>)
  })

  test.each([
    ['a=1&a=2', 'a', 'max'],
    ['a=1&%61=2', 'a', 'max'],
    ['__proto__=1&__proto__=2', '__proto__', 'max'],
    ['a=%', 'a', 'pattern'],
    ['a=%zz', 'a', 'pattern'],
    ['a=%ff', 'a', 'pattern'],
    ['%c3=1', '%c3', 'pattern'],
  ])('%p is refused, naming the parameter', (query, name, code) => {
    expect(refusal(query)).toMatchObject(Object.fromEntries([[name, { code }]]))
  })

  test('no parameter changes a prototype', () => {
    const parameters = parseQueryString('__proto__=x&toString=y')
    expect(Object.getPrototypeOf(parameters)).toBeNull()
    expect(Object.entries(parameters)).toEqual([
      ['__proto__', 'x'],
      ['toString', 'y'],
    ])
  })

  test('parses query strings of browsers', () => {
    const text = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name.toWellFormed() }), (entries) => {
        const written = new URLSearchParams(entries as [string, string][])
        expect(Object.entries(parseQueryString(written.toString())).sort()).toEqual([...written].sort())
      }),
    )
  })
})
