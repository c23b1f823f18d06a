import { expect, test } from 'bun:test'
import { parseTestConfig } from '../../../server/tests/harness/config.ts'
import { declarationOf, newKey, variableOf } from '../../src/areas/settings/new-service-key.ts'

test('the lines of a new key are a configuration that loads', () => {
  const [key, name] = [newKey(), 'night-worker']
  expect(key).toMatch(/^[\w-]{43}$/)
  expect(newKey()).not.toBe(key)
  const text = declarationOf({
    name,
    scopes: ['db:table:*:read', 'storage:bucket:it.s:write'],
    expiresAt: '2030-05-01',
  })
  const read = new Function('process', `return [${text}]`)
  const serviceKeys = read({ env: { [variableOf(name)]: key } })
  const config = parseTestConfig({ serviceKeys }, 'release', 'the root key 0123456789')
  expect(config.serviceKeys[1]).toEqual({
    name,
    key,
    scopes: ['db:table:*:read', 'storage:bucket:it.s:write'],
    expiresAtMs: Date.UTC(2030, 4, 1),
  })
})
