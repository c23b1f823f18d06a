/** The path `/`: a page for browsers and JSON for other clients, in development and in release mode. */
import { describe, expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const databases = {
  space: { instance: true, tables: { inner: { access: open } } },
  shared: { tables: { xyzzy: { access: open } } },
} as const
/** The `Accept` header of Chromium. */
const browser = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
}
const developmentLinks = { dashboard: '/dashboard' }
const publicLinks = { docs: '/docs', openapi: '/openapi.json', health: '/api/health' }

describeServer('/, in development mode', { config: { databases } }, (server) => {
  test('[SYS-18] is JSON unless the client accepts HTML, with any query', async () => {
    for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.9', 'nonsense']) {
      const { status, headers, body } = await server.anonymous.get('/?utm_source=x', { accept })
      expect(status).toBe(200)
      expect(body).toEqual({
        name: 'Plinth',
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        links: { ...developmentLinks, ...publicLinks, setup: '/setup' },
      })
      expect(headers.get('content-type')).toBe('application/json')
      expect(headers.get('vary')).toContain('Accept')
    }
  })

  test('[SYS-18] is an HTML page for browsers, with a policy that allows no scripts', async () => {
    const { status, headers, text } = await server.anonymous.get('/', browser)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('vary')).toContain('Accept')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toStartWith("default-src 'none'; style-src 'sha256-")
    expect(policy).not.toMatch(/script-src|unsafe/)
    expect(text).not.toMatch(/<script|(?:src|action)=|@import/)
    for (const path of Object.values(publicLinks)) {
      expect(text).toContain(`href="${path}"`)
      expect((await server.anonymous.get(path)).status).toBe(200)
    }
  })

  test('[SYS-18] refuses an invalid token', async () => {
    expectRefusal(await server.anonymous.get('/', { ...browser, authorization: 'Bearer nonsense' }), 401)
  })

  test('[SYS-19] reports a missing administrator and contains no secret', async () => {
    const before = await server.anonymous.get('/', browser)
    expect(before.text).toContain('No administrator exists')
    const token = await server.issueSetupToken()
    expect(token).not.toBeNull()
    const { secret, serviceKey, dataFolder } = server.settings()
    for (const hidden of [token ?? '', secret, serviceKey, dataFolder, 'xyzzy']) {
      expect((await server.anonymous.get('/', browser)).text).not.toContain(hidden)
      expect((await server.anonymous.get('/')).text).not.toContain(hidden)
    }
    const admin = { token, email: 'ada@example.com', password: 'a good long password' }
    expect((await server.anonymous.post('/api/auth/setup', admin)).status).toBe(201)
    expect((await server.anonymous.get('/', browser)).text).not.toContain('administrator')
    expect((await server.anonymous.get('/')).body.links).toEqual({ ...developmentLinks, ...publicLinks })
    await server.reload({ databases, dashboard: false })
    expect((await server.anonymous.get('/')).body.links).toEqual(publicLinks)
  })

  test('[SYS-19] has example commands that work, with a table name if the schema is public', async () => {
    expect((await server.anonymous.get('/', browser)).text).toContain('/tables/TABLE?limit=3')
    await server.reload({ databases, api: { schemaEndpoint: true } })
    const { text } = await server.anonymous.get('/', browser)
    const [, url = ''] = /'(http:[^']*xyzzy[^']*)'/.exec(text.replaceAll('&#39;', "'")) ?? []
    expect(url).toBe(`${server.url}/api/db/shared/tables/xyzzy?limit=3`)
    expect((await server.service.get(url.slice(server.url.length))).status).toBe(200)
  })
})

describeServer(
  '/, in release mode',
  { config: { databases, api: { schemaEndpoint: true } }, mode: 'release' },
  (server) => {
    test('[SYS-20] links to the public endpoints and contains nothing else', async () => {
      expect((await server.anonymous.get('/')).body).toEqual({ name: 'Plinth', links: publicLinks })
      const { text } = await server.anonymous.get('/', browser)
      expect([...text.matchAll(/href="(\/[^"]*)"/g)].map(([, href]) => href)).toEqual(Object.values(publicLinks))
      expect(text).not.toMatch(/administrator|xyzzy|curl|\d+\.\d+\.\d+|development/)
    })

    describe('health', () => {
      test('[SYS-1] accepts any query parameters, as monitoring tools append them', async () => {
        for (const query of ['?t=123', '?_=1&cachebust=abc', '?status=unavailable'])
          expect((await server.anonymous.get(`/api/health${query}`)).body.status).toBe('ok')
      })
    })
  },
)
