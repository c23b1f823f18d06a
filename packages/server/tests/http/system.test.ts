/** The system endpoints: health, config, schema in its three modes, the OpenAPI document and its page, and metrics. */
import { describe, expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, rootKey, tokenSecret } from '../harness/server.ts'

const keys = [
  { name: 'schema', key: 'schema-reader-0123456789', scopes: ['schema:endpoint:*:read'] },
  { name: 'records', key: 'record-reader-0123456789', scopes: ['db:table:*:read'] },
] as const

const databases = {
  shared: {
    tables: {
      posts: {
        schema: {
          title: { type: 'string', required: true, min: 1, max: 200 },
          slug: { type: 'string', unique: true, pattern: '^[a-z]+$' },
          views: { type: 'number', default: 3, min: 0 },
          kind: { type: 'string', enum: ['a', 'b'] },
          authorId: { type: 'string', references: 'authors' },
          concealed: { type: 'string' },
        },
        hidden: ['concealed'],
        indexes: [{ fields: ['views', 'createdAt'] }, { fields: ['concealed'] }, { fields: ['views', 'concealed'] }],
        search: ['title'],
        access: { read: (auth: { role: string } | null) => auth?.role === 'xyzzy-role' },
      },
      authors: { schema: { name: { type: 'string' } }, access: open },
      twin: { schema: { inShared: { type: 'number' } } },
      loose: { access: open },
    },
  },
  workspace: { instance: true, tables: { twin: { schema: { inWorkspace: { type: 'boolean' } } } } },
} as const

const tableNames = ['posts', 'authors', 'concealed', 'inWorkspace', 'workspace']

describeServer(
  'system with a closed schema',
  { config: { databases, serviceKeys: keys, captcha: { siteKey: 'site-key-1' } } },
  (server) => {
    test('[SYS-16] health reports the engines to a service key with the scope only', async () => {
      const engines = { sql: 'ok', blobs: 'ok', cluster: 'ok' }
      const { status, body } = await server.service.get('/api/health')
      expect(status).toBe(200)
      expect(body).toEqual({ status: 'ok', version: expect.any(String), timestamp: expect.any(String), engines })
      for (const key of ['schema-reader-0123456789', 'wrong'])
        expect((await server.withKey(key).get('/api/health')).body).not.toHaveProperty('engines')
    })

    test('[SYS-1] health is ok for every caller, whatever the credentials', async () => {
      for (const headers of [
        {},
        { authorization: 'Bearer nonsense' },
        { authorization: 'Basic x' },
        { 'x-platform-service-key': 'wrong' },
      ]) {
        const { status, body } = await server.anonymous.get('/api/health', headers)
        expect(status).toBe(200)
        expect(Object.keys(body).sort()).toEqual(['status', 'timestamp', 'version'])
        expect(body.status).toBe('ok')
        expect(body.version).toMatch(/^\d+\.\d+\.\d+/)
        expect(Math.abs(Date.parse(body.timestamp) - Date.now())).toBeLessThan(60_000)
      }
    })

    test('[SYS-3] config contains what a client needs and no secret', async () => {
      const { status, body, text } = await server.anonymous.get('/api/config')
      expect(status).toBe(200)
      expect(body).toMatchObject({
        captcha: { siteKey: 'site-key-1' },
        auth: { providers: [], passwordPolicy: {} },
      })
      for (const secret of [rootKey, tokenSecret, 'reader', server.dataFolder, ...tableNames])
        expect(text).not.toContain(secret)
      expect((await server.as('alice').get('/api/config')).body).toEqual(body)
    })

    test('[SYS-4] schema is 404 for every caller', async () => {
      for (const client of [server.anonymous, server.as('alice'), server.service, server.withKey(keys[0].key)])
        expectRefusal(await client.get('/api/schema'), 404)
    })

    test('[SYS-10, SYS-11] the OpenAPI document is public and contains no table name', async () => {
      for (const client of [server.anonymous, server.as('alice'), server.service]) {
        const { status, body, text } = await client.get('/openapi.json')
        expect(status).toBe(200)
        expect(body.openapi).toMatch(/^3\.1\./)
        expect(body.info).toMatchObject({ title: expect.any(String), version: expect.any(String) })
        for (const name of tableNames) expect(text).not.toContain(`"${name}"`)
      }
    })

    test('[SYS-10] every operation has a unique id, responses and its path parameters', async () => {
      const { body } = await server.anonymous.get('/openapi.json')
      const names: string[] = []
      for (const [path, item] of Object.entries(
        body.paths as Record<
          string,
          Record<
            string,
            { operationId: string; responses: object; parameters?: { name: string; in: string; $ref?: string }[] }
          >
        >,
      )) {
        for (const [method, operation] of Object.entries(item).filter(([method]) =>
          ['get', 'post', 'put', 'patch', 'delete'].includes(method),
        )) {
          names.push(operation.operationId)
          expect(operation.operationId).toMatch(/^[a-z][A-Za-z]*\.[a-z][A-Za-z]*/)
          if (Object.keys(operation.responses).length === 0) throw new Error(`${method} ${path} has no responses`)
          const declared = (operation.parameters ?? [])
            .filter((parameter) => parameter.in === 'path')
            .map(({ name }) => name)
          expect(declared.sort()).toEqual([...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '').sort())
        }
      }
      expect(new Set(names).size).toBe(names.length)
      for (const name of [
        'records.list',
        'records.get',
        'records.insert',
        'records.update',
        'records.delete',
        'records.count',
        'records.search',
        'records.batch',
        'records.batchByFilter',
        'records.transaction',
        'system.health',
        'system.config',
        'system.schema',
      ])
        if (!names.some((one) => one.startsWith(name))) throw new Error(`no operation has the id ${name}`)
    })

    test('[SYS-10] every reference inside the document resolves', async () => {
      const { body, text } = await server.anonymous.get('/openapi.json')
      for (const [, reference = ''] of text.matchAll(/"\$ref":"([^"]+)"/g)) {
        expect(reference).toStartWith('#/')
        const found = reference
          .slice(2)
          .split('/')
          .reduce((node, part) => node?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], body)
        if (found === undefined) throw new Error(`${reference} does not resolve`)
      }
    })

    test('[SYS-12] the documentation page loads nothing from another host', async () => {
      const { status, headers, text } = await server.anonymous.get('/docs')
      expect(status).toBe(200)
      expect(headers.get('content-type')).toMatch(/^text\/html; ?charset=utf-8/i)
      expect(text).toContain('openapi.json')
      expect(
        [...text.matchAll(/(?:src|href|action)\s*=\s*["']?(?:https?:)?\/\/[^"'\s>]+/gi)].map(([match]) => match),
      ).toEqual([])
      expect(text).not.toMatch(/@import|url\(\s*["']?(https?:)?\/\//i)
    })

    test('[SYS-13] metrics are in the Prometheus text format, for service keys only', async () => {
      await server.anonymous.get('/api/db/shared/tables/authors')
      const { status, headers, text } = await server.service.get('/metrics')
      expect(status).toBe(200)
      expect(headers.get('content-type')).toMatch(/^text\/plain/)
      expect(text).toMatch(/^# TYPE \w+ (counter|gauge|histogram|summary)$/m)
      expect(text).toContain('records.list')
      for (const line of text.trim().split('\n'))
        expect(line).toMatch(/^(|#.*|[a-zA-Z_:][\w:]*(\{.*\})? [-+0-9.eEINnaf]+( \d+)?)$/)
      expectRefusal(await server.anonymous.get('/metrics'), 401)
      expectRefusal(await server.as('alice').get('/metrics'), 403)
    })

    test('[SYS-13] unknown paths, tables and methods do not add metrics', async () => {
      const lines = async () => (await server.service.get('/metrics')).text.split('\n').length
      await server.anonymous.get('/made-up')
      await server.anonymous.get('/api/db/shared/tables/made-up')
      const before = await lines()
      for (let n = 0; n < 50; n++) {
        await server.anonymous.get(`/made-up-${n}`)
        await server.anonymous.get(`/api/db/shared/tables/made-up-${n}`)
        await server.anonymous.request(`MADE${n}`, '/api/health').catch(() => undefined)
      }
      expect((await lines()) - before).toBeLessThan(20)
    })
  },
)

const openConfig = {
  databases,
  serviceKeys: keys,
  api: { schemaEndpoint: true },
  storage: { buckets: { avatars: { access: { read: () => ({ uploadedBy: 'xyzzy' }) } }, docs: {} } },
  rooms: {
    game: {
      access: { join: (auth: { role: string } | null) => auth?.role === 'xyzzy-role' },
      actions: { move: () => 'xyzzy', chat: () => undefined },
      timers: { concealed: () => undefined },
    },
    lobby: { access: { join: true } },
  },
  kv: { sessions: {} },
} as const

describeServer('system with an open schema', { config: openConfig }, (server) => {
  test('[SYS-5, SYS-7] schema describes tables and fields', async () => {
    const { status, body } = await server.anonymous.get('/api/schema')
    expect(status).toBe(200)
    expect(Object.keys(body.tables).sort()).toEqual(['authors', 'loose', 'posts', 'shared.twin', 'workspace.twin'])
    const { posts } = body.tables
    expect(Object.keys(posts).sort()).toEqual(['fields', 'indexes', 'name', 'namespace', 'schemaless', 'search'])
    expect(posts).toMatchObject({ namespace: 'shared', search: ['title'] })
    expect(posts.fields.title).toMatchObject({ type: 'string', required: true, unique: false, min: 1, max: 200 })
    expect(posts.fields.slug).toMatchObject({ type: 'string', required: false, unique: true, pattern: '^[a-z]+$' })
    expect(posts.fields.views).toMatchObject({ type: 'number', default: 3, min: 0 })
    expect(posts.fields.kind).toMatchObject({ enum: ['a', 'b'] })
    expect(posts.fields.authorId).toMatchObject({ references: 'authors' })
    expect(posts.fields.id).toMatchObject({ type: 'string', unique: true })
    expect(posts.fields.createdAt).toMatchObject({ type: 'datetime' })
  })

  test('[SYS-8] schema contains no rule, no hidden field and no index on one', async () => {
    for (const client of [server.anonymous, server.as('alice'), server.service]) {
      const { text, body } = await client.get('/api/schema')
      for (const word of ['concealed', 'xyzzy', 'access', '=>', 'hidden']) expect(text).not.toContain(word)
      expect(body.tables.posts.indexes.map(({ fields }: { fields: string[] }) => fields)).toEqual([
        ['views', 'createdAt'],
      ])
    }
  })

  test('[SYS-7, SYS-21] schema describes namespaces, buckets and rooms', async () => {
    const { body } = await server.anonymous.get('/api/schema')
    expect(body).toEqual({
      tables: expect.any(Object),
      namespaces: { shared: { instance: false }, workspace: { instance: true } },
      buckets: ['avatars', 'docs'],
      rooms: { game: { actions: ['move', 'chat'] }, lobby: { actions: [] } },
      functions: {},
    })
    expect([body.tables['workspace.twin'].name, body.tables.posts.name]).toEqual(['twin', 'posts'])
    expect([body.tables.loose.schemaless, body.tables.posts.schemaless]).toEqual([true, false])
  })

  test('[SYS-9] a table name in two namespaces is qualified with its namespace', async () => {
    const { tables } = (await server.anonymous.get('/api/schema')).body
    expect(tables['shared.twin'].namespace).toBe('shared')
    expect(tables['shared.twin'].fields).toContainKey('inShared')
    expect(tables['workspace.twin'].namespace).toBe('workspace')
    expect(tables['workspace.twin'].fields).toContainKey('inWorkspace')
    expect(tables.twin).toBeUndefined()
  })

  test('[SYS-11] the OpenAPI document contains tables, but no hidden field', async () => {
    const { text } = await server.anonymous.get('/openapi.json')
    expect(text).toContain('posts')
    expect(text).toContain('authorId')
    for (const word of ['concealed', 'xyzzy']) expect(text).not.toContain(word)
  })

  test('[SYS-5] a service key without the scope is refused', async () => {
    expectRefusal(await server.withKey(keys[1].key).get('/api/schema'), 401)
    expect((await server.withKey(keys[0].key).get('/api/schema')).status).toBe(200)
  })
})

describeServer(
  'system with an authenticated schema',
  { config: { databases, serviceKeys: keys, api: { schemaEndpoint: 'authenticated' } } },
  (server) => {
    test('[SYS-6] users and service keys with the scope can read the schema, others cannot', async () => {
      expectRefusal(await server.anonymous.get('/api/schema'), 401)
      expectRefusal(await server.withKey(keys[1].key).get('/api/schema'), 401)
      for (const client of [server.as('alice'), server.service, server.withKey(keys[0].key)])
        expect((await client.get('/api/schema')).status).toBe(200)
    })

    test('[SYS-11] the OpenAPI document contains tables for the same callers', async () => {
      for (const client of [server.anonymous, server.withKey(keys[1].key)]) {
        const { status, text } = await client.get('/openapi.json')
        expect(status).toBe(200)
        for (const name of tableNames) expect(text).not.toContain(`"${name}"`)
      }
      expect((await server.as('alice').get('/openapi.json')).text).toContain('posts')
    })
  },
)

describe('system without a captcha', () =>
  describeServer('system', { config: {} }, (server) => {
    test('[SYS-3] captcha is null', async () => {
      expect((await server.anonymous.get('/api/config')).body.captcha).toBe(null)
    })

    test('[SYS-1] a server without tables is healthy', async () => {
      expect((await server.anonymous.get('/api/health')).body.status).toBe('ok')
      expectRefusal(await server.service.get('/api/db/shared/tables/items'), 404)
    })
  }))
