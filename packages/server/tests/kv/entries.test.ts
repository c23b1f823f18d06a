/** The actions of key-value stores: scopes, stored values and refused commands. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { codesOf } from '../harness/records/scenarios.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { kvPath, openStore } from '../harness/resources/kv.ts'
import { describeServer } from '../harness/server.ts'

const keyOf = (scope: string): string => `a-key-with-scope-${scope}`
/** Scopes, with the kinds of actions that they allow in the namespace `cache`. */
const scopes: Readonly<Record<string, readonly string[]>> = {
  'kv:namespace:cache:read': ['read'],
  'kv:namespace:cache:write': ['write'],
  'kv:namespace:cache:*': ['read', 'write'],
  'kv:namespace:*:read': ['read'],
  'kv:namespace:other:*': [],
  'db:table:cache:read': [],
}
const free = { writeInterval: 0 }
const config = {
  kv: {
    cache: free,
    other: free,
    small: { writeInterval: 0, maxValueSize: '1kb' },
    large: { writeInterval: 0, maxValueSize: '2mb' },
  },
  serviceKeys: Object.keys(scopes).map((scope) => ({ name: scope, key: keyOf(scope), scopes: [scope] })),
}

/** A lone surrogate, which JSON can express but UTF-8 cannot. */
const half = '\ud800'

describeServer('key-value', { config }, (server) => {
  const cache = openStore(server.service, 'cache')
  const small = openStore(server.service, 'small')
  beforeAll(async () => {
    expect((await cache.set('kept', 'k')).status).toBe(200)
  })

  test('[KV-1, KV-4, KV-5] keys can be set, read, listed and deleted', async () => {
    const set = await cache.set('a', { n: 1 })
    expect(set.status).toBe(200)
    expect(set.body).toEqual({ ok: true })
    expect((await cache.get('a')).text).toBe('{"value":{"n":1}}')
    expect((await cache.list()).body).toEqual({ keys: ['a', 'kept'], cursor: null })
    expect((await cache.set('a', 'other')).body).toEqual({ ok: true })
    expect((await cache.get('a')).body).toEqual({ value: 'other' })
    expect((await cache.delete('a')).body).toEqual({ ok: true })
    expect((await cache.get('a')).body).toEqual({ value: null })
    expect((await cache.list()).body.keys).toEqual(['kept'])
    const again = await cache.delete('a')
    expect(again.status).toBe(200)
    expect(again.body).toEqual({ ok: true })
  })

  test('[RES-8, KV-4] large values are validated, stored and returned like small ones', async () => {
    const large = openStore(server.service, 'large')
    const headers = { 'content-type': 'application/json' }
    const sendRaw = (raw: string) => server.service.request('POST', kvPath('large'), { raw, headers })
    const list = Array.from({ length: 12_000 }, (_, n) => ({ n: n / 8, 'é "x"': [null, {}, [n % 2 === 0]] }))
    for (const value of [
      list,
      { __proto__: null, list, nested: { list: [list.slice(0, 5000)] } },
      'é\n'.repeat(300_000),
    ]) {
      const body = JSON.stringify({ action: 'set', key: 'a', value }, null, 1)
      expect((await sendRaw(body)).status).toBe(200)
      expect((await large.get('a')).text).toBe(`{"value":${JSON.stringify(value)}}`)
    }
    const send = (value: string) => sendRaw(`{"action":"set","key":"a","value":${value}}`)
    const filler = '1,'.repeat(300_000)
    expectRefusal(await send(`[${filler}1e999]`), 400, 'value')
    expectRefusal(await send(`[${filler}]`), 400, 'valid JSON')
    expectRefusal(await send(`[${filler}${'['.repeat(100)}${']'.repeat(100)}]`), 400, 'deeper')
    expectRefusal(await send(`[${filler}${filler}${filler}${filler}1]`), 413)
    expect((await large.delete('a')).status).toBe(200)
  })

  test('[KV-1] an undeclared namespace is 404', async () => {
    for (const name of ['nothing', 'Cache', 'cache%20', '__proto__', 'constructor', '_kv', 'x'.repeat(300)]) {
      const other = openStore(server.service, name)
      for (const answer of [await other.get('a'), await other.set('a', 1), await other.delete('a'), await other.list()])
        expectRefusal(answer, 404, 'Namespace')
    }
    expectRefusal(await server.service.request('PUT', kvPath('cache')), 405)
  })

  test('[KV-19] namespaces do not share keys', async () => {
    const other = openStore(server.service, 'other')
    await cache.set('same', 1)
    await other.set('same', 2)
    expect((await cache.get('same')).body.value).toBe(1)
    expect((await other.get('same')).body.value).toBe(2)
    await other.delete('same')
    expect((await cache.get('same')).body.value).toBe(1)
    expect(await other.dump()).toEqual({})
    await cache.delete('same')
  })

  test('[KV-2] each action requires its scope', async () => {
    const commands = {
      read: [{ action: 'get', key: 'kept' }, { action: 'list' }],
      write: [
        { action: 'set', key: 'kept', value: 'k' },
        { action: 'delete', key: 'absent' },
      ],
    }
    for (const [scope, admitted] of Object.entries(scopes)) {
      const client = server.withKey(keyOf(scope))
      for (const [kind, ofKind] of Object.entries(commands))
        for (const command of ofKind) {
          const answer = await client.post(kvPath('cache'), command)
          if (admitted.includes(kind)) expect({ scope, command, status: answer.status }).toMatchObject({ status: 200 })
          else expectRefusal(answer, 401, 'Invalid service key')
        }
      // A key without any scope for the namespace gets no validation errors.
      expectRefusal(await client.post(kvPath('cache'), { action: 'none' }), admitted.length > 0 ? 400 : 401)
      // An unknown namespace gets the same error as one out of scope.
      const status = scope === 'kv:namespace:*:read' ? 404 : 401
      expectRefusal(await client.post(kvPath('nothing'), { action: 'list' }), status)
    }
    expect(await cache.dump()).toEqual({ kept: 'k' })
  })

  test('[KV-2] only service keys are admitted', async () => {
    for (const command of [
      { action: 'get', key: 'kept' },
      { action: 'set', key: 'kept', value: 1 },
    ]) {
      expectRefusal(await server.anonymous.post(kvPath('cache'), command), 401, 'Authentication required')
      expectRefusal(await server.as({ id: 'ann', role: 'admin' }).post(kvPath('cache'), command), 403)
      expectRefusal(await server.withKey('wrong').post(kvPath('cache'), command), 401)
      expectRefusal(await server.anonymous.post(kvPath('nothing'), command), 401, 'Authentication required')
    }
    expect(await cache.dump()).toEqual({ kept: 'k' })
  })

  describe('malformed commands', () => {
    const key = 'x'
    const cases: readonly [command: object, data: Record<string, string>][] = [
      [{}, { action: 'required' }],
      [{ action: 'put', key, value: 1 }, { action: 'enum' }],
      [{ action: 'GET', key }, { action: 'enum' }],
      [{ action: null, key }, { action: 'enum' }],
      [{ action: ['get'], key }, { action: 'enum' }],
      [{ action: '__proto__', key }, { action: 'enum' }],
      [{ action: 'get' }, { key: 'required' }],
      [{ action: 'set', value: 1 }, { key: 'required' }],
      [{ action: 'set', key }, { value: 'required' }],
      [{ action: 'set' }, { key: 'required', value: 'required' }],
      [{ action: 'delete' }, { key: 'required' }],
      [{ action: 'get', key: 1 }, { key: 'type' }],
      [{ action: 'get', key: null }, { key: 'type' }],
      [{ action: 'get', key: ['x'] }, { key: 'type' }],
      [{ action: 'get', key: { $gt: '' } }, { key: 'type' }],
      [{ action: 'set', key, value: 1, ttl: '60' }, { ttl: 'type' }],
      [{ action: 'list', prefix: 1 }, { prefix: 'type' }],
      [{ action: 'list', limit: '5' }, { limit: 'type' }],
      [{ action: 'list', cursor: 5 }, { cursor: 'type' }],
    ]
    for (const [command, data] of cases)
      test(`[KV-3] ${JSON.stringify(command)} is refused`, async () => {
        const body = expectRefusal(await server.service.post(kvPath('cache'), command), 400)
        expect(codesOf(body.data)).toEqual(data)
        expect(await cache.dump()).toEqual({ kept: 'k' })
      })

    test('[KV-3] a body that is not a JSON object is refused', async () => {
      const headers = { 'content-type': 'application/json' }
      for (const raw of ['', '[]', '"get"', 'null', '{"action":"get"', '{"action":"set","key":"x","value":NaN}'])
        expectRefusal(await server.service.request('POST', kvPath('cache'), { raw, headers }), 400)
      expectRefusal(await server.service.request('POST', kvPath('cache'), { raw: '{}', headers: {} }), 415)
      expect(await cache.dump()).toEqual({ kept: 'k' })
    })

    test('[KV-3] members that an action does not have are ignored', async () => {
      const raw =
        '{"action":"get","key":"kept","value":1,"tll":5,"__proto__":{"key":"x"},"constructor":{"prototype":1}}'
      const answer = await server.service.request('POST', kvPath('cache'), {
        raw,
        headers: { 'content-type': 'application/json' },
      })
      expect(answer.status).toBe(200)
      expect(answer.body).toEqual({ value: 'k' })
      expect(({} as { key?: string }).key).toBeUndefined()
    })
  })

  describe('keys', () => {
    for (const key of ['', 'x'.repeat(513), '€'.repeat(171), 'a\0', '\0', half, `a${half}`, '\udc00b'])
      test(`[KV-8] ${JSON.stringify(key).slice(0, 20)} of ${Buffer.byteLength(key)} bytes is invalid`, async () => {
        for (const answer of [await cache.get(key), await cache.set(key, 1), await cache.delete(key)])
          expectRefusal(answer, 400, 'key')
        if (key !== '') expectRefusal(await cache.list({ prefix: key }), 400, 'prefix')
        expect(await cache.dump()).toEqual({ kept: 'k' })
      })

    for (const key of [
      ' ',
      'x'.repeat(512),
      '€'.repeat(170),
      '\u{1F600}'.repeat(128),
      '%',
      "a'; DROP TABLE entries; --",
      '__proto__',
      'constructor',
      'a\nb',
      '\u0001',
      '../x',
      '?1',
    ])
      test(`[KV-8] ${JSON.stringify(key).slice(0, 30)} of ${Buffer.byteLength(key)} bytes is valid`, async () => {
        expect((await cache.set(key, [key])).status).toBe(200)
        expect((await cache.get(key)).body).toEqual({ value: [key] })
        expect((await cache.list({ prefix: key })).body.keys).toEqual([key])
        expect((await cache.delete(key)).status).toBe(200)
        expect((await cache.get(key)).body).toEqual({ value: null })
      })

    test('[KV-8] keys that look alike are different keys', async () => {
      const alike = ['\u00e9', 'e\u0301', 'E', 'e', 'e ', ' e', '\uff45']
      for (const [at, key] of alike.entries()) await cache.set(key, at)
      for (const [at, key] of alike.entries()) expect((await cache.get(key)).body.value).toBe(at)
      for (const key of alike) await cache.delete(key)
    })
  })

  describe('values', () => {
    const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
    /** Values as sent, and as returned where that differs. */
    const cases: readonly [sent: string, stored?: string][] = [
      ['null'],
      ['true'],
      ['false'],
      ['""'],
      ['0'],
      ['-1.5'],
      ['9007199254740991'],
      ['1.7976931348623157e+308'],
      ['5e-324'],
      ['0.1'],
      ['-0', '0'],
      ['1e2', '100'],
      ['[]'],
      ['{}'],
      [' [ 1 , 2 ] ', '[1,2]'],
      ['"\\u0000\\u0001\\b\\"\\\\/"'],
      ['"\\ud800"'],
      ['"\\udfff\\ud800x"'],
      ['"h\u00e9 \u{1F600} \u2028 \ufeff"'],
      ['"\\u00e9"', '"\u00e9"'],
      ['{"__proto__":{"a":1},"constructor":1,"toString":null,"":2}'],
      [
        '{"b":1,"a":{"$op":"increment"},"1":[null,{"value":[]}]}',
        '{"1":[null,{"value":[]}],"b":1,"a":{"$op":"increment"}}',
      ],
      ['"{\\"value\\":1}"'],
      [deep(63)],
    ]
    for (const [sent, stored = sent] of cases)
      test(`[KV-6] ${sent.slice(0, 60)} is stored`, async () => {
        const raw = `{"action":"set","key":"v","value":${sent}}`
        const answer = await server.service.request('POST', kvPath('cache'), {
          raw,
          headers: { 'content-type': 'application/json' },
        })
        expect(answer.status).toBe(200)
        expect(answer.text).toBe('{"ok":true}')
        expect((await cache.get('v')).text).toBe(`{"value":${stored}}`)
        await cache.delete('v')
      })

    for (const sent of ['1e309', '[{"a":-1e999}]', deep(64), '"\\x"', 'undefined', '01', '"\u0000"'])
      test(`[KV-6] ${sent.slice(0, 40)} is refused`, async () => {
        const raw = `{"action":"set","key":"kept","value":${sent}}`
        const headers = { 'content-type': 'application/json' }
        expectRefusal(await server.service.request('POST', kvPath('cache'), { raw, headers }), 400)
        expect(await cache.dump()).toEqual({ kept: 'k' })
      })

    test('[KV-7] a value has at most 1 MiB by default', async () => {
      const mebibyte = 'x'.repeat(1024 * 1024 - 2)
      expect((await cache.set('large', mebibyte)).status).toBe(200)
      expect((await cache.get('large')).body.value).toBe(mebibyte)
      expect((await cache.list({ prefix: 'la' })).body.keys).toEqual(['large'])
      // Refused by the size of the value, and by the size of the body before it is read.
      for (const more of ['x', 'x'.repeat(100_000)])
        expectRefusal(await cache.set('large', mebibyte + more), 413, 'larger than')
      expect((await cache.get('large')).body.value).toBe(mebibyte)
      await cache.delete('large')
    })

    test('[KV-7] the maximum is configurable per namespace and counts bytes of UTF-8', async () => {
      expect((await small.set('a', 'x'.repeat(1022))).status).toBe(200)
      expectRefusal(await small.set('a', 'x'.repeat(1023)), 413)
      expect((await small.set('b', '\u00e9'.repeat(511))).status).toBe(200)
      expectRefusal(await small.set('b', '\u00e9'.repeat(512)), 413)
      expectRefusal(await small.set('b', 'x'.repeat(20_000)), 413)
      expect(await small.dump()).toEqual({ a: 'x'.repeat(1022), b: '\u00e9'.repeat(511) })
      // Escapes count in the body, not in the value.
      const raw = `{"action":"set","key":"c","value":"${'\\u00e9'.repeat(511)}"}`
      const headers = { 'content-type': 'application/json' }
      expect((await server.service.request('POST', kvPath('small'), { raw, headers })).status).toBe(200)
    })
  })
})
