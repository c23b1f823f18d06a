import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ApiError } from '../../../errors.ts'
import { redirectUrlCharsMax } from '../../../limits/users.ts'
import { parseRedirectUrl } from './redirects.ts'

const listed = [
  'https://app.example.org',
  'https://other.example.org/cb?x=1',
  'com.example.app:/signed-in',
  'http://[::1]:5000',
]

function verdict(text: string, allowsLocal = false, list: readonly string[] = listed): string | null {
  try {
    return parseRedirectUrl(text, { listed: list, allowsLocal }, 'redirect_url')
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error
    expect(Object.keys(error.data ?? {})).toEqual(['redirect_url'])
    return null
  }
}

describe('redirect URLs', () => {
  test.each([
    ['https://app.example.org', 'https://app.example.org/'],
    ['https://app.example.org/any/page?a=b&c', 'https://app.example.org/any/page?a=b&c'],
    ['HTTPS://APP.example.ORG:443/x', 'https://app.example.org/x'],
    ['https://app.example.org/a/../b', 'https://app.example.org/b'],
    ['https://other.example.org/cb?x=1', 'https://other.example.org/cb?x=1'],
    ['com.example.app:/signed-in', 'com.example.app:/signed-in'],
    ['http://[::1]:5000/x', 'http://[::1]:5000/x'],
  ])('[OAUTH-2] allows %s', (text, url) => {
    expect(verdict(text)).toBe(url)
  })

  test.each([
    '',
    'app.example.org',
    '/signed-in',
    '//evil.example',
    '//app.example.org',
    'https:app.example.org@evil.example',
    'https://app.example.org@evil.example',
    'https://app.example.org:x@evil.example/',
    'https://user@app.example.org/',
    'https://app.example.org.evil.example',
    'https://app.example.orgevil.example',
    'https://evil.example/https://app.example.org',
    'https://evil.example\\@app.example.org',
    'https://app.example.org\\.evil.example',
    'https:\\\\app.example.org\\',
    'https://app.example.org\\@evil.example',
    'https://app.example.org/\r\nSet-Cookie: a=b',
    'https://app.example.org/\u0000',
    'https://app.exam\tple.org/',
    ' https://app.example.org/',
    'https://app.example.org/ ',
    'https://app.example.org/#accessToken=mine',
    'https://app.example.org/#',
    'https://app.example.org:8443/',
    'http://app.example.org/',
    'https://sub.app.example.org/',
    'https://app.ex\u00e4mple.org/',
    'https://\u0430pp.example.org/',
    'https://other.example.org/',
    'https://other.example.org/cb',
    'https://other.example.org/cb?x=1&y=2',
    'https://other.example.org/cb/../x',
    'com.example.app:/signed-in/x',
    'com.example.app:/other',
    'COM.example.app:/signed-in',
    'com.example.app2:/signed-in',
    'javascript:alert(1)//https://app.example.org',
    'data:text/html,x',
    'http://localhost:3000/',
    'http://127.0.0.1/',
    'http://[::1]:5001/',
    ['https://app.example.org/'].map((url) => url + 'x'.repeat(redirectUrlCharsMax))[0] ?? '',
  ])('[OAUTH-2] rejects %j', (text) => {
    expect(verdict(text)).toBeNull()
  })

  test('[OAUTH-2] in development mode loopback pages are allowed on any port', () => {
    for (const url of ['http://localhost:3000/', 'http://127.0.0.1:8080/cb', 'https://localhost/', 'http://[::1]:1/'])
      expect([verdict(url, true, []), verdict(url, false, [])]).toEqual([url, null])
    for (const url of [
      'http://localhost.evil.example/',
      'http://localhost@evil.example/',
      'http://127.0.0.2/',
      'ftp://localhost/',
    ])
      expect(verdict(url, true, [])).toBeNull()
  })

  test('[OAUTH-2] every allowed URL has a listed origin when parsed by a browser', () => {
    const piece = fc.constantFrom(
      ...[
        'https:',
        '//',
        '/',
        '\\',
        '@',
        '.',
        ':',
        '#',
        '?',
        '%2f',
        '%40',
        '\t',
        '\n',
        '\u0000',
        '443',
        'evil.example',
      ],
      ...['app.example.org', 'https://app.example.org', 'a', '[', ']', '\u3002', '\uff0f'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const url = verdict(pieces.join(''), false, ['https://app.example.org'])
        if (url !== null) expect(new URL(url).origin).toBe('https://app.example.org')
      }),
      { numRuns: 5000 },
    )
  })
})
