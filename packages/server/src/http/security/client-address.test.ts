import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseTrustProxy } from '../../base/network/address.ts'
import { clientAddress } from './client-address.ts'

const address = (trust: string, peer: string | null, forwarded?: string): string =>
  clientAddress(
    { headers: new Headers(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }), readPeer: () => peer },
    parseTrustProxy(trust),
  )

describe('clientAddress', () => {
  test.each([
    // trusted, peer, X-Forwarded-For, client
    ['', '192.0.2.1', undefined, '192.0.2.1'],
    ['', '::ffff:192.0.2.1', undefined, '192.0.2.1'],
    ['', '192.0.2.1', '10.0.0.1', '192.0.2.1'],
    ['', null, '10.0.0.1', 'unknown'],
    ['1', '192.0.2.1', undefined, '192.0.2.1'],
    ['1', '192.0.2.1', '203.0.113.7', '203.0.113.7'],
    ['1', '192.0.2.1', '6.6.6.6, 203.0.113.7', '203.0.113.7'],
    ['2', '192.0.2.1', '6.6.6.6, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['2', '192.0.2.1', '203.0.113.7', '203.0.113.7'],
    ['1', '192.0.2.1', '203.0.113.7, nonsense', '192.0.2.1'],
    ['1', '192.0.2.1', '', '192.0.2.1'],
    ['1', '192.0.2.1', ',', '192.0.2.1'],
    ['1', '192.0.2.1', '203.0.113.7:4711', '203.0.113.7'],
    ['1', '192.0.2.1', '[2001:db8::1]:4711', '2001:db8::1'],
    ['1', '192.0.2.1', '[2001:DB8::1]', '2001:db8::1'],
    ['10.0.0.0/8', '10.0.0.1', '6.6.6.6, 203.0.113.7, 10.9.9.9', '203.0.113.7'],
    ['10.0.0.0/8', '192.0.2.1', '203.0.113.7', '192.0.2.1'],
    ['10.0.0.0/8', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['10.0.0.0/8', '10.0.0.1', 'unknown, 10.0.0.2', '10.0.0.2'],
    ['10.0.0.0/8', null, '203.0.113.7', 'unknown'],
    ['::1', '::1', '203.0.113.7', '203.0.113.7'],
  ])('trusting %p, from %p with %p: %s', (trust, peer, forwarded, client) => {
    expect(address(trust, peer, forwarded)).toBe(client)
  })

  test('the address of the connection is not read where a number of proxies is trusted and has named the client', () => {
    const request = {
      headers: new Headers({ 'x-forwarded-for': '203.0.113.7' }),
      readPeer(): string {
        throw new Error('The address of the connection was read')
      },
    }
    expect(clientAddress(request, parseTrustProxy('1'))).toBe('203.0.113.7')
    expect(() => clientAddress(request, parseTrustProxy('10.0.0.0/8'))).toThrow()
  })

  test('a client cannot change the address under which it is counted', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.,:[] ax') }), fc.ipV4(), (invented, seen) => {
        expect(address('1', '10.0.0.1', `${invented}, ${seen}`)).toBe(seen)
        expect(address('10.0.0.1', '10.0.0.1', `${invented}, 203.0.113.7`)).toBe('203.0.113.7')
      }),
    )
  })
})
