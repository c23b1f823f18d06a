import { describe, expect, test } from 'bun:test'
import { matchesEtag } from './etags.ts'
import { createReplyTemplates, empty, json, jsonText, toResponse } from './reply.ts'

const templates = createReplyTemplates({ Vary: 'Origin' })

describe('replies', () => {
  test('json', async () => {
    const response = toResponse(json({ a: 1 }, 201, { ETag: '"x"' }), templates)
    expect(response.status).toBe(201)
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, no-cache',
      vary: 'Origin',
      etag: '"x"',
    })
    expect(await response.json()).toEqual({ a: 1 })
  })

  test('headers of a reply override the defaults and affect no other reply', () => {
    const reply = jsonText('{}', 200, { 'Cache-Control': 'public', Vary: 'Accept' })
    expect(toResponse(reply, templates).headers.get('cache-control')).toBe('public')
    expect(toResponse(json({}), templates).headers.get('cache-control')).toBe('private, no-cache')
    expect(
      toResponse({ status: 200, text: 'a', contentType: 'text/html' }, templates).headers.get('content-type'),
    ).toBe('text/html')
    expect(toResponse(json({}), templates).headers.get('content-type')).toBe('application/json')
  })

  test('a reply without a body has no content type', () => {
    const response = toResponse(empty(204), templates)
    expect(response.status).toBe(204)
    expect(response.body).toBeNull()
    expect(response.headers.has('content-type')).toBe(false)
  })
})

describe('matchesEtag', () => {
  test.each([
    ['"a"', '"a"', true],
    ['"b"', '"a"', false],
    ['*', '"a"', true],
    ['W/"a"', '"a"', true],
    ['"a"', 'W/"a"', true],
    ['"b", "a"', '"a"', true],
    ['"b",W/"a" , "c"', '"a"', true],
    ['"a,b"', '"a,b"', true],
    ['"x,"a"', '"a"', false],
    ['a', '"a"', false],
    ['', '"a"', false],
  ])('%p against %p: %p', (ifNoneMatch, etag, matches) => {
    expect(matchesEtag(ifNoneMatch, etag)).toBe(matches)
  })
})
