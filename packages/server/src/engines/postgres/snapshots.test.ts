import { describe, expect, test } from 'bun:test'
import { isAhead, isBeyond, isWithin, visibleIn } from './snapshots.ts'

describe('snapshots', () => {
  test('contain the transactions that had ended', () => {
    const visible = [99, 100, 101, 102, 103, 104].filter(visibleIn('100:104:100,102'))
    expect(visible).toEqual([99, 101, 103])
    expect([103, 104].filter(visibleIn('104:104:'))).toEqual([103])
  })

  test('contain earlier ones', () => {
    const inOrder = ['100:101:100', '100:104:100,102', '102:104:102', '104:104:', '105:106:105', '106:106:']
    for (const [at, earlier] of inOrder.entries()) {
      for (const later of inOrder.slice(at)) expect(isWithin(earlier, later)).toBe(true)
      for (const before of inOrder.slice(0, at)) expect(isWithin(earlier, before)).toBe(false)
    }
  })

  test('of different histories do not contain each other', () => {
    expect(isWithin('100:104:100', '102:104:102')).toBe(false)
    expect(isWithin('102:104:102', '100:104:100')).toBe(false)
  })

  test('are ahead of those that were taken before further transactions began', () => {
    expect(isAhead('100:104:', '104:103:')).toBe(true)
    expect(isAhead('100:103:', '90:103:90')).toBe(false)
  })

  test('may lack transactions from the first in progress on', () => {
    expect([99, 100, 103].map((xid) => isBeyond(xid, '100:103:100'))).toEqual([false, true, true])
  })
})
