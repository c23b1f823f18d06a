/** Rules that apply to every endpoint, tested on every declared endpoint. */
import { describe, expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const config = {
  databases: { shared: { tables: { x: { access: open } } } },
  storage: { buckets: { x: { access: { read: true, write: true, delete: true } } } },
  kv: { x: {} },
  sql: { x: {} },
  vector: { x: { dimensions: 2 } },
  api: { schemaEndpoint: true },
  rateLimits: { auth: { requests: 100_000 } },
} as const

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** Larger bodies are tested with the endpoints that accept them. */
const sentBytesMax = 4 * 1024 * 1024

type Declared = ReturnType<TestServer['endpoints']>[number]

const shared = (path: string): string => path.replace('/:namespace/', '/shared/')
const concrete = (path: string): string => shared(path).replaceAll(/:\w+\+?/g, 'x')

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll(/:\w+\+/g, '.+').replaceAll(/:\w+/g, '[^/]+')}$`)

describeServer('every endpoint', { config }, (server) => {
  const each = async (check: (endpoint: Declared, path: string) => Promise<void>): Promise<void> => {
    const all = server.endpoints()
    expect(all.length).toBeGreaterThan(80)
    for (const endpoint of all) for (const path of endpoint.paths) await check(endpoint, concrete(path))
  }

  test('[HTTP-7, ERR-1] an unsupported method is 405 with an Allow header', async () => {
    let tested = 0
    await each(async (endpoint, path) => {
      const fitting = server.endpoints().filter(({ paths }) => paths.some((one) => patternOf(one).test(path)))
      const answered = new Set(fitting.map(({ method }) => method))
      for (const method of methods.filter((one) => !answered.has(one))) {
        const answer = await server.service.request(method, path)
        expect([endpoint.name, method, answer.status]).toEqual([endpoint.name, method, 405])
        expectRefusal(answer, 405)
        expect(answer.headers.get('allow')?.split(', ')).toContain(endpoint.method)
        tested++
      }
    })
    expect(tested).toBeGreaterThan(200)
  })

  test('[AUTH-3, KEY-1, KEY-2, SYS-1] a token or key that is none is 401 everywhere but at health', async () => {
    const before = await server.dump('/api/db/shared/tables/x')
    const wrong = [
      [{ authorization: 'Bearer nonsense' }, 'Invalid token'],
      [{ 'x-platform-service-key': 'nonsense' }, 'Invalid service key'],
    ] as const
    await each(async ({ name, method }, path) => {
      for (const [headers, message] of wrong) {
        const answer = await server.anonymous.request(
          method,
          path,
          /GET|HEAD/.test(method) ? { headers } : { body: {}, headers },
        )
        expect([name, answer.status]).toEqual([name, name === 'system.health' ? 200 : 401])
        if (answer.status === 401 && method !== 'HEAD') expectRefusal(answer, 401, message)
      }
    })
    expect(await server.dump('/api/db/shared/tables/x')).toEqual(before)
  })

  describe('with a JSON body', () => {
    const eachWithBody = (check: (endpoint: Declared, path: string) => Promise<void>): Promise<void> =>
      each(async (endpoint, path) => {
        if (endpoint.body !== undefined) await check(endpoint, path)
      })
    const send = (endpoint: Declared, path: string, raw: BodyInit, contentType?: string) =>
      server.service.request(endpoint.method, path, {
        raw,
        headers: contentType === undefined ? {} : { 'content-type': contentType },
      })

    test('[HTTP-2, ERR-1] of another type, or of none, is 415', async () => {
      const before = await server.dump('/api/db/shared/tables/x')
      await eachWithBody(async (endpoint, path) => {
        for (const type of ['text/plain', 'application/xml', 'application/jsonp', 'multipart/form-data', undefined]) {
          const answer = await send(endpoint, path, new TextEncoder().encode('{}'), type)
          expect([endpoint.name, type, answer.status]).toEqual([endpoint.name, type, 415])
          expectRefusal(answer, 415)
        }
      })
      expect(await server.dump('/api/db/shared/tables/x')).toEqual(before)
    })

    test('[HTTP-4, ERR-1] that is no JSON object is 400', async () => {
      const before = await server.dump('/api/db/shared/tables/x')
      await eachWithBody(async (endpoint, path) => {
        for (const text of ['', '{', '[]', '1', 'null', '"text"', '{"a":1}x']) {
          if (text === '' && endpoint.isBodyOptional) continue
          const answer = await send(endpoint, path, new TextEncoder().encode(text), 'application/json')
          expect([endpoint.name, text, answer.status]).toEqual([endpoint.name, text, 400])
          expectRefusal(answer, 400)
        }
      })
      expect(await server.dump('/api/db/shared/tables/x')).toEqual(before)
    })

    test('[HTTP-6, ERR-1] that exceeds the size limit is 413', async () => {
      let tested = 0
      await eachWithBody(async (endpoint, path) => {
        const { bodyBytesMax: bytesMax = 1_048_576 } = endpoint
        // A limit that depends on the path is tested in its chapter.
        if (typeof bytesMax === 'function' || bytesMax > sentBytesMax) return
        const raw = `{"a":"${'x'.repeat(bytesMax)}"}`
        const answer = await send(endpoint, path, raw, 'application/json')
        expect([endpoint.name, answer.status]).toEqual([endpoint.name, 413])
        expectRefusal(answer, 413)
        tested++
      })
      expect(tested).toBeGreaterThan(20)
    })
  })
})
