import { describe, expect, test } from 'bun:test'
import { BlockList, isIP } from 'node:net'
import fc from 'fast-check'
import { canonicalAddress, countedAddress, matchesCidr, parseCidr, parseTrustProxy } from './address.ts'

describe('canonicalAddress', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['255.255.255.255', '255.255.255.255'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::A:0:0:1', '2001:db8::a:0:0:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['1:2:3:4:5:6:0:8', '1:2:3:4:5:6:0:8'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::FFFF:0a01:0203', '10.1.2.3'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['::127.0.0.1', '::7f00:1'],
    ['0:0:1:0:0:1:1:1', '::1:0:0:1:1:1'],
    ['::0:0:0:0:0.0.0.0', '::'],
  ])('%s is normalized to %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical)
  })

  test.each([
    '',
    ' ',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '1.2.3.4 ',
    '0x7f.0.0.1',
    '2130706433',
    ':',
    ':::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '::1:2:3:4:5:6:7:8',
    '12345::',
    '::1.2.3.4:5',
    '1.2.3.4::',
    '[::1]',
    'g::',
    ':1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:',
  ])('%p is not an address', (text) => {
    expect(canonicalAddress(text)).toBeNull()
  })

  test('each address has one canonical form, and normalizing is idempotent', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const once = canonicalAddress(text)
        expect(once).not.toBeNull()
        expect(canonicalAddress(once ?? '')).toBe(once)
        expect(canonicalAddress(text.toUpperCase())).toBe(once)
      }),
    )
  })

  test('any text returns an address or null', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789abcf:.%/') }), (text) => {
        const canonical = canonicalAddress(text)
        if (canonical !== null) expect(canonicalAddress(canonical)).toBe(canonical)
      }),
    )
  })
})

describe('countedAddress', () => {
  test.each([
    ['10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['::1', '::/64'],
    ['unknown', 'unknown'],
  ])('%s counts as %s', (address, counted) => {
    expect(countedAddress(address)).toBe(counted)
  })
})

describe('networks', () => {
  test.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.9.9.9/8', '10.0.0.1', true],
    ['192.168.1.128/25', '192.168.1.127', false],
    ['192.168.1.128/25', '192.168.1.200', true],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '::1', false],
    ['::/0', '::1', true],
    ['::/0', '203.0.113.9', false],
    ['203.0.113.9', '203.0.113.9', true],
    ['203.0.113.9', '203.0.113.8', false],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['::ffff:10.0.0.0/104', '10.2.3.4', true],
    ['10.0.0.0/8', '::ffff:10.2.3.4', true],
    ['10.0.0.0/8', 'unknown', false],
  ])('%s over %s: %p', (network, address, inside) => {
    expect(matchesCidr(parseCidr(network), address)).toBe(inside)
  })

  test.each(['', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129', '::ffff:1.2.3.4/95', 'all'])(
    '%p is refused',
    (text) => {
      expect(() => parseCidr(text)).toThrow(`'${text}'`)
    },
  )

  test("agree with the runtime's BlockList", () => {
    const familyOf = (text: string): 'ipv4' | 'ipv6' => (isIP(text) === 4 ? 'ipv4' : 'ipv6')
    const bytes = fc.nat(255)
    const ipv4 = fc.tuple(bytes, bytes, bytes, bytes).map((parts) => parts.join('.'))
    const near = fc.tuple(ipv4, ipv4, fc.nat(32))
    const near6 = fc.tuple(fc.ipV6(), fc.ipV6(), fc.nat(128))
    fc.assert(
      fc.property(fc.oneof(near, near6), ([first, second, bits]) => {
        const [network, address] = [canonicalAddress(first) ?? '', canonicalAddress(second) ?? '']
        fc.pre(familyOf(network) === familyOf(first) && familyOf(address) === familyOf(second))
        const list = new BlockList()
        list.addSubnet(network, bits, familyOf(network))
        expect(matchesCidr(parseCidr(`${network}/${bits}`), address)).toBe(list.check(address, familyOf(address)))
        expect(matchesCidr(parseCidr(`${network}/${bits}`), network)).toBe(true)
      }),
    )
  })

  test('a block contains exactly the addresses with its leading bits', () => {
    const ipv4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
    const bitsOf = (bytes: readonly number[]): string => bytes.map((b) => b.toString(2).padStart(8, '0')).join('')
    fc.assert(
      fc.property(ipv4, ipv4, fc.nat(32), (network, address, bits) => {
        const expected = bitsOf(network).slice(0, bits) === bitsOf(address).slice(0, bits)
        expect(matchesCidr(parseCidr(`${network.join('.')}/${bits}`), address.join('.'))).toBe(expected)
      }),
    )
    fc.assert(
      fc.property(fc.ipV6(), fc.integer({ min: 96, max: 128 }), (address, bits) => {
        expect(matchesCidr(parseCidr(`${address}/${bits}`), address)).toBe(true)
      }),
    )
  })
})

describe('parseTrustProxy', () => {
  test.each([
    ['', { kind: 'none' }],
    ['0', { kind: 'none' }],
    ['none', { kind: 'none' }],
    [' 2 ', { kind: 'hops', hops: 2 }],
    ['10.0.0.0/8, ::1', { kind: 'networks', networks: [parseCidr('10.0.0.0/8'), parseCidr('::1')] }],
  ])('%p', (text, trust) => {
    expect(parseTrustProxy(text)).toEqual(trust as ReturnType<typeof parseTrustProxy>)
  })

  test.each(['-1', '1.5', 'yes', '10.0.0.0/8,here', '1000'])('%p is refused', (text) => {
    expect(() => parseTrustProxy(text)).toThrow("'")
  })
})
