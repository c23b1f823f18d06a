import { describe, expect, test } from 'bun:test'
import type { Caller } from '../../../access/caller.ts'
import { userCaller } from '../../../access/callers.test.ts'
import { createBudget } from './budget.ts'

const bounds = {
  user: { subscriptionsMax: 3, filterCharsMax: 100 },
  address: { subscriptionsMax: 5, filterCharsMax: 150 },
}
const anonymous: Caller = { kind: 'anonymous', auth: null, address: 'a' }
const service: Caller = { kind: 'service', auth: null, keyName: 'root', scopes: ['*'] }

describe('[SUB-97] the budget of subscriptions', () => {
  const take = (budget: ReturnType<typeof createBudget>, caller: Caller, address: string, count: number, chars = 0) =>
    Array.from({ length: count }, () => budget.reserve(caller, address, chars))

  test('of a user holds over all addresses, and is given back once', () => {
    const budget = createBudget(bounds)
    const [first] = take(budget, userCaller('ann'), 'a', 2)
    take(budget, userCaller('ann'), 'b', 1)
    expect(() => budget.reserve(userCaller('ann'), 'c', 0)).toThrow('At most 3 subscriptions per user')
    budget.reserve(userCaller('bob'), 'c', 0)
    first?.()
    first?.()
    budget.reserve(userCaller('ann'), 'c', 0)
    expect(() => budget.reserve(userCaller('ann'), 'c', 0)).toThrow('At most 3 subscriptions per user')
  })

  test('of an address holds over all users and anonymous sockets', () => {
    const budget = createBudget(bounds)
    take(budget, userCaller('ann'), 'a', 2)
    take(budget, userCaller('bob'), 'a', 1)
    const [last] = take(budget, anonymous, 'a', 2)
    for (const caller of [anonymous, userCaller('cid')])
      expect(() => budget.reserve(caller, 'a', 0)).toThrow('At most 5 subscriptions per address')
    budget.reserve(anonymous, 'b', 0)
    last?.()
    budget.reserve(userCaller('cid'), 'a', 0)
  })

  test('counts the characters of filters, and a refusal counts nothing', () => {
    const budget = createBudget(bounds)
    const [first] = take(budget, userCaller('ann'), 'a', 1, 80)
    expect(() => budget.reserve(userCaller('ann'), 'a', 21)).toThrow('of one user may have at most 100 characters')
    budget.reserve(userCaller('ann'), 'a', 20)
    budget.reserve(userCaller('ann'), 'a', 0)
    expect(() => budget.reserve(userCaller('bob'), 'a', 51)).toThrow('of one address may have at most 150 characters')
    first?.()
    budget.reserve(userCaller('bob'), 'a', 100)
  })

  test('lets a subscription be replaced at the bound', () => {
    const budget = createBudget(bounds)
    const [, , third] = take(budget, userCaller('ann'), 'a', 3, 33)
    expect(() => budget.reserve(userCaller('ann'), 'a', 35, 33)).toThrow('characters')
    const replacing = budget.reserve(userCaller('ann'), 'a', 34, 33)
    third?.()
    expect(() => budget.reserve(userCaller('ann'), 'a', 0)).toThrow('At most 3')
    replacing()
    budget.reserve(userCaller('ann'), 'a', 34)
  })

  test('does not count service keys', () => {
    const budget = createBudget(bounds)
    expect(take(budget, service, 'a', 100, 1000)).toHaveLength(100)
    take(budget, anonymous, 'a', 5)
  })
})
