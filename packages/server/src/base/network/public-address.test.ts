import { describe, expect, test } from 'bun:test'
import { BlockList, isIPv4 } from 'node:net'
import fc from 'fast-check'
import { isPublicAddress } from './public-address.ts'

describe('the public internet', () => {
  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '100.63.255.255',
    '172.32.0.1',
    '223.255.255.255',
    '2606:4700::1111',
    '::ffff:8.8.8.8',
  ])('[PUSH-WEB-5] %s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test.each([
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '127.255.255.254', '169.254.169.254', '172.16.0.1'],
    ...['172.31.255.255', '192.0.0.8', '192.168.1.1', '198.19.0.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...[
      '::',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::127.0.0.1',
      'fe80::1',
      'fe80::1%eth0',
      'fc00::1',
      'fd00::1',
    ],
    ...[
      'ff02::1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '2001::1',
      '2001:db8::1',
      'localhost',
      '',
      '2130706433',
      '0x7f.1',
    ],
    ...['0177.0.0.1', '127.1', '1.1.1.1.', '[::1]'],
  ])('[PUSH-WEB-5] %p is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test('[PUSH-WEB-5] no address of a special-purpose block is public', () => {
    const closed = new BlockList()
    for (const [network, bits] of [
      ...([
        ['0.0.0.0', 8],
        ['10.0.0.0', 8],
        ['100.64.0.0', 10],
        ['127.0.0.0', 8],
        ['169.254.0.0', 16],
      ] as const),
      ...([
        ['172.16.0.0', 12],
        ['192.0.0.0', 24],
        ['192.0.2.0', 24],
        ['192.88.99.0', 24],
        ['192.168.0.0', 16],
      ] as const),
      ...([
        ['198.18.0.0', 15],
        ['198.51.100.0', 24],
        ['203.0.113.0', 24],
        ['224.0.0.0', 3],
      ] as const),
      // Direct delegation of AS112, and automatic multicast tunnels.
      ...([
        ['192.31.196.0', 24],
        ['192.52.193.0', 24],
        ['192.175.48.0', 24],
      ] as const),
    ])
      closed.addSubnet(network, bits, 'ipv4')
    for (const [network, bits] of [
      ['2001::', 23],
      ['2001:db8::', 32],
      ['2002::', 16],
      ['3fff::', 20],
    ] as const)
      closed.addSubnet(network, bits, 'ipv6')
    closed.addSubnet('2620:4f:8000::', 48, 'ipv6')
    const isGlobal = (address: string): boolean => isIPv4(address) || /^[23]...:/.test(address)
    const ipv6 = fc
      .tuple(
        fc.constantFrom('2001', '2001:1', '2002', '2620:4f:8000', '2a00', '3fff', '3fff:1000', '4000', 'fe80'),
        fc.nat(0xffff),
      )
      .map(([start, end]) => `${start}::${end.toString(16)}`)
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), ipv6), (address) => {
        const isOpen = isGlobal(address) && !closed.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
        expect([address, isPublicAddress(address)]).toEqual([address, isOpen])
      }),
      { numRuns: 2000 },
    )
  })
})
