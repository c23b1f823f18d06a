import { describe, expect, test } from 'bun:test'
import { manualClock } from '../base/clock.ts'
import { serviceKeyCharsMax } from '../limits/api.ts'
import { createServiceKeys, parseScope, permitsScope, type ServiceKey, scopeForms } from './service-keys.ts'

const root: ServiceKey = { name: 'root', key: 'root-key-0123456789', scopes: ['*'] }
const reader: ServiceKey = { name: 'reader', key: 'reader-key-0123456789', scopes: ['db:table:posts:read'] }

describe('createServiceKeys', () => {
  const clock = manualClock()
  const keys = createServiceKeys([root, reader], clock)

  test('[KEY-1] a configured key authenticates a service caller with its name and scopes', () => {
    expect(keys.find(root.key, '127.0.0.1')).toEqual({ kind: 'service', auth: null, keyName: 'root', scopes: ['*'] })
    expect(keys.find(reader.key, '127.0.0.1')?.keyName).toBe('reader')
  })

  const wrong = [
    ['empty', ''],
    ['unknown', 'other-key'],
    ['a prefix', root.key.slice(0, -1)],
    ['followed by a space', `${root.key} `],
    ['preceded by another character', `x${root.key}`],
    ['in another case', root.key.toUpperCase()],
    ['followed by NUL', `${root.key}\0`],
    ['too long', 'k'.repeat(serviceKeyCharsMax + 1)],
  ] as const
  for (const [what, presented] of wrong) {
    test(`[KEY-1, KEY-10] a presented key that is ${what} is rejected`, () => {
      expect(keys.find(presented, '127.0.0.1')).toBeNull()
    })
  }

  test('[KEY-10] a key over the maximum length is rejected even if configured', () => {
    const key = 'k'.repeat(serviceKeyCharsMax + 1)
    expect(createServiceKeys([{ ...root, key }], clock).find(key, '127.0.0.1')).toBeNull()
  })

  test('[KEY-8] a key is rejected from its expiry on', () => {
    const own = manualClock(1_000)
    const expiring = createServiceKeys([{ ...root, expiresAtMs: 2_000 }], own)
    own.set(1_999)
    expect(expiring.find(root.key, '127.0.0.1')?.keyName).toBe('root')
    own.set(2_000)
    expect(expiring.find(root.key, '127.0.0.1')).toBeNull()
  })

  test('[KEY-9] a key with allowed networks is rejected from any other address', () => {
    const local = createServiceKeys([{ ...root, ipCidr: ['10.1.0.0/16', '2001:db8::/32'] }], clock)
    expect(local.find(root.key, '10.1.255.3')?.keyName).toBe('root')
    expect(local.find(root.key, '2001:db8:1::7')?.keyName).toBe('root')
    expect(local.find(root.key, '10.2.0.1')).toBeNull()
    expect(local.find(root.key, '2001:db9::1')).toBeNull()
    expect(local.find(root.key, 'unknown')).toBeNull()
    expect(createServiceKeys([{ ...root, ipCidr: [] }], clock).find(root.key, '10.1.0.1')).toBeNull()
  })

  test('an invalid network is rejected when the keys are created', () => {
    expect(() => createServiceKeys([{ ...root, ipCidr: ['10.0.0.0/33'] }], clock)).toThrow()
  })
})

describe('permitsScope', () => {
  const cases: readonly [scopes: string[], needed: string, permitted: boolean][] = [
    [['*'], 'db:table:posts:write', true],
    [['db:table:posts:read'], 'db:table:posts:read', true],
    [['db:table:posts:read'], 'db:table:posts:write', false],
    [['db:table:posts:read'], 'db:table:users:read', false],
    [['db:table:*:read'], 'db:table:users:read', true],
    [['db:table:posts:*'], 'db:table:posts:write', true],
    [['*:*:*:read'], 'storage:bucket:a:read', true],
    [['*:*:*:read'], 'storage:bucket:a:write', false],
    [['storage:*:*:*'], 'db:table:posts:read', false],
    [['kv:namespace:a:read', 'db:table:posts:write'], 'db:table:posts:write', true],
    [[], 'db:table:posts:read', false],
    [['db:table:posts:read'], 'db:table:*:read', false],
    [['db:table:posts:read'], 'db:table:posts:read:write', false],
    [['db:table:*:read'], 'db:table:a:b:read', false],
    [['db:table:posts'], 'db:table:posts', false],
  ]
  for (const [scopes, needed, permitted] of cases) {
    test(`[KEY-4, KEY-7] ${JSON.stringify(scopes)} ${permitted ? 'permits' : 'does not permit'} ${needed}`, () => {
      expect(permitsScope(scopes, needed)).toBe(permitted)
    })
  }
})

describe('parseScope', () => {
  const good = [
    ...['*', 'db:table:posts:read', 'db:table:*:write', 'db:*:*:*', '*:*:*:*', '*:*:*:read', 'db:channel:*:broadcast'],
    ...['auth:admin:*:*', 'analytics:*:*:*', 'schema:endpoint:*:read', 'vector:index:docs:query', 'push:*:*:send'],
  ]
  for (const scope of good) test(`[KEY-12] ${scope} is a valid scope`, () => expect(parseScope(scope)).toBe(scope))

  const bad = [
    ...[
      '',
      'db',
      'db:table',
      'db:table:posts',
      'db:table:posts:read:write',
      'db:tables:posts:read',
      'DB:table:posts:read',
    ],
    ...['db:table::read', 'db:table:posts:delete', 'db:table:po sts:read', 'push:token:mine:read', ' *', '**:*:*:*'],
    ...['kv:bucket:a:read', 'db:table:posts:read|write', 'constructor:*:*:*'],
  ]
  for (const scope of bad) {
    test(`[KEY-12] ${JSON.stringify(scope)} is rejected with an error that names it`, () => {
      expect(() => parseScope(scope)).toThrow(`"${scope}" is not a valid scope`)
    })
  }

  test('[KEY-12] every published form is accepted with each of its actions', () => {
    for (const form of scopeForms) {
      const [area, type, name, actions = ''] = form.split(':')
      for (const action of actions.split('|')) {
        const scope = [area, type, name?.replace(/[{}]/g, ''), action].join(':')
        expect(parseScope(scope)).toBe(scope)
      }
    }
  })
})
