import { describe, expect, test } from 'bun:test'
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
  ])('[PUSH-WEB-5] %s is of it', (address) => {
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
  ])('[PUSH-WEB-5] %p is not', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})
