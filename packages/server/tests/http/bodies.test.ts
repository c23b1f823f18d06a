/** JSON bodies: checks of the content type, size, depth and syntax before any endpoint validates the content. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { sendRaw } from '../harness/raw-http.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { itemsPath as base, itemsConfig as config, jsonType } from '../harness/storage/http-items.ts'

describeServer('bodies', { config }, (server) => {
  beforeAll(async () => {
    expect((await server.anonymous.post(base, { id: 'a', title: 'A', slug: 'a' })).status).toBe(201)
  })

  const total = async (): Promise<number> => (await server.service.get(`${base}/count`)).body.total
  const send = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = jsonType) =>
    server.anonymous.request('POST', base, { raw, headers })

  test('[HTTP-1] responses have a JSON body and content type', async () => {
    for (const path of [base, `${base}/a`, `${base}/count`, '/api/health', '/api/config', `${base}/nope`, '/nope'])
      expect((await server.anonymous.get(path)).headers.get('content-type')).toMatch(/^application\/json\b/)
  })

  test('[HTTP-1] requests and responses are UTF-8', async () => {
    const { body } = await send(new TextEncoder().encode('{"title":"h\u00e9 \u{1F600}"}'))
    expect((await server.anonymous.get(`${base}/${body.id}`)).body.title).toBe('h\u00e9 \u{1F600}')
    const before = await total()
    expectRefusal(
      await send(
        new Uint8Array([...new TextEncoder().encode('{"title":"'), 0xff, 0xfe, ...new TextEncoder().encode('"}')]),
      ),
      400,
    )
    expect(await total()).toBe(before)
  })

  describe('content types', () => {
    for (const type of [
      'text/plain',
      'text/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
      'application/json2',
      'application/vnd.api+json',
      'json',
      'application/json, text/plain',
      'application/json; charset=utf-16',
      '',
    ])
      test(`[HTTP-2] content type ${JSON.stringify(type)} is 415`, async () => {
        const before = await total()
        for (const [method, path] of [
          ['POST', base],
          ['POST', `${base}?upsert=true`],
          ['PATCH', `${base}/a`],
          ['POST', `${base}/batch`],
          ['POST', `${base}/batch-by-filter`],
        ] as const) {
          const answer = await server.anonymous.request(method, path, {
            raw: new TextEncoder().encode('{"title":"x"}'),
            headers: { 'content-type': type },
          })
          expectRefusal(answer, 415, 'application/json')
        }
        expect(await total()).toBe(before)
      })

    test('[HTTP-2] a missing content type is 415, with and without a body', async () => {
      expectRefusal(await server.anonymous.request('POST', base, { raw: new TextEncoder().encode('{}') }), 415)
      const answer = await sendRaw(server.url, `POST ${base} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      expect(answer.status).toBe(415)
      const withBody = await sendRaw(
        server.url,
        `POST ${base} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
      )
      expect(withBody.status).toBe(415)
    })

    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'application/json;charset=UTF-8',
      'Application/JSON',
      'application/json ; x=y',
      'APPLICATION/JSON;CHARSET="utf-8"',
    ])
      test(`[HTTP-3] content type ${type} is accepted`, async () => {
        expect((await send('{"title":"x"}', { 'content-type': type })).status).toBe(201)
      })
  })

  describe('bodies', () => {
    const nested = (levels: number): string => `{"tags":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    for (const raw of [
      '',
      ' ',
      '{',
      '{"title":',
      '{"title":"x",}',
      "{'title':'x'}",
      '{title:"x"}',
      '{"title":"x"}{"title":"y"}',
      '{"title":"x"} x',
      'undefined',
      'NaN',
      '{"title":NaN}',
      '\ufeff{"title":"x"}x',
      '{"title":"\u0001"}',
      '{"a":01}',
    ])
      test(`[HTTP-4] ${JSON.stringify(raw)} is not JSON`, async () => {
        const before = await total()
        expectRefusal(await send(raw), 400)
        expect(await total()).toBe(before)
      })

    for (const raw of ['[]', '[{"title":"x"}]', 'null', 'true', '5', '"text"', '[[]]'])
      test(`[HTTP-4] ${raw} is not an object`, async () => {
        const before = await total()
        for (const path of [base, `${base}/batch`, `${base}/batch-by-filter`])
          expectRefusal(await server.anonymous.request('POST', path, { raw, headers: jsonType }), 400)
        expectRefusal(await server.anonymous.request('PATCH', `${base}/a`, { raw, headers: jsonType }), 400)
        expect(await total()).toBe(before)
      })

    test('[HTTP-5] 64 levels of nesting are accepted, more are refused', async () => {
      expect((await send(nested(64))).status).toBe(201)
      const before = await total()
      for (const levels of [65, 1000, 100_000]) expectRefusal(await send(nested(levels)), 400, '64')
      expectRefusal(await send(`{"tags":${'{"a":'.repeat(64)}1${'}'.repeat(64)}}`), 400, '64')
      expectRefusal(await send(`{"tags":${'['.repeat(500_000)}`), 400)
      expect(await total()).toBe(before)
    })

    test('[HTTP-5] brackets in strings do not count as nesting', async () => {
      expect((await send(JSON.stringify({ title: `${'['.repeat(500)}\\"${'{'.repeat(500)}` }))).status).toBe(201)
    })

    test('[HTTP-6] a body of 1 MiB is accepted, one byte more is 413', async () => {
      const limit = 1_048_576
      const sized = (bytes: number): string => `{"title":"${'x'.repeat(bytes - 12)}"}`
      expect(sized(limit).length).toBe(limit)
      expect((await send(sized(limit))).status).toBe(201)
      const before = await total()
      expect(expectRefusal(await send(sized(limit + 1)), 413).slug).toBe('payload-too-large')
      expectRefusal(await send(`{"title":"${'\u00e4'.repeat(limit / 2)}"}`), 413)
      expect(await total()).toBe(before)
    })

    test('[HTTP-6] a chunked body is 413 once it exceeds the limit', async () => {
      const before = await total()
      const piece = new TextEncoder().encode('x'.repeat(64 * 1024))
      let sent = 0
      const body = new ReadableStream({
        pull(controller) {
          if (sent++ === 0) controller.enqueue(new TextEncoder().encode('{"title":"'))
          else if (sent < 40) controller.enqueue(piece)
          else controller.close()
        },
      })
      const response = await fetch(server.url + base, { method: 'POST', body, headers: jsonType })
      expect(response.status).toBe(413)
      expect(await total()).toBe(before)
      const chunked = `POST ${base} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{"title\r\n5\r\n":"c"\r\n1\r\n}\r\n0\r\n\r\n`
      expect((await sendRaw(server.url, chunked)).status).toBe(201)
    })

    test('[HTTP-12] a body cannot pollute prototypes', async () => {
      for (const raw of [
        '{"__proto__":{"polluted":1}}',
        '{"constructor":{"prototype":{"polluted":1}}}',
        '{"tags":{"__proto__":{"polluted":1}}}',
        '{"updates":[{"id":"a","data":{"__proto__":{"polluted":1}}}]}',
      ])
        for (const path of [base, `${base}/batch`, `${base}?upsert=true`, `${base}/batch-by-filter`]) {
          const { status } = await server.anonymous.request('POST', path, { raw, headers: jsonType })
          expect(status).toBeLessThan(500)
        }
      await server.anonymous.get(`${base}?__proto__[polluted]=1&constructor.prototype.polluted=1&fields=__proto__`)
      expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    })

    test('[ERR-7] a duplicate member in a body is accepted', async () => {
      expect((await send('{"title":"first","title":"last"}')).status).toBe(201)
    })
  })
})
