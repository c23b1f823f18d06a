/** Functions in `/openapi.json` and `/api/schema`. */
import { afterAll, expect, test } from 'bun:test'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'

const project = openFunctionProject(`
import { z } from ${JSON.stringify(Bun.resolveSync('zod', import.meta.dir))}
const tree = z.object({ name: z.string(), get parts() { return z.array(tree) } })
export const plain = rpc({}, () => 1)
export const typed = rpc({ input: z.object({ id: z.string(), count: z.number().optional() }) }, () => 1)
export const shaped = rpc({ output: z.object({ n: z.number() }) }, () => ({ n: 1 }))
export const counts = rpc({ output: z.number() }, async function* () { yield 1 })
export const nested = rpc({ input: tree }, () => 1)
export const opaque = rpc({ input: { '~standard': { version: 1, vendor: 'own', validate: (value) => ({ value }) } } }, () => 1)
export const dates = rpc({ input: z.object({ at: z.date() }) }, () => 1)
export const ticks = rpc({ caller: 'anyone' }, async function* () { yield 1 })
export const internal = rpc({ caller: 'service' }, () => 1)
export const report = http.get('/reports/:day', {}, () => new Response())
export const any = http.all('/any', {}, () => new Response())
export const one = http.get('/any', {}, () => new Response())
`)
afterAll(() => project.remove())

const settings = { projectFolder: project.folder }

describeServer('described functions', { config: { api: { schemaEndpoint: true } }, settings }, (server) => {
  test('[FN-19] /api/schema describes rpc functions with the JSON Schema of their input', async () => {
    const { functions } = (await server.anonymous.get('/api/schema')).body
    expect(Object.keys(functions)).toEqual(['counts', 'dates', 'nested', 'opaque', 'plain', 'shaped', 'ticks', 'typed'])
    expect(functions.plain).toEqual({ input: null, output: null, streams: false })
    expect(functions.typed.input).toMatchObject({
      type: 'object',
      properties: { id: { type: 'string' }, count: { type: 'number' } },
      required: ['id'],
    })
    expect(functions.shaped.output).toMatchObject({ type: 'object', properties: { n: { type: 'number' } } })
    expect(functions.counts).toMatchObject({ output: { type: 'number' }, streams: true })
    expect([functions.opaque.input, functions.dates.input]).toEqual([null, null])
    expect(functions.ticks).toEqual({ input: null, output: null, streams: true })
    expect(Object.keys((await server.service.get('/api/schema')).body.functions)).toContain('internal')
  })

  test('[FN-19] /openapi.json has a path for each function', async () => {
    const { body } = await server.anonymous.get('/openapi.json')
    const { paths, components } = body
    expect(paths['/api/fn/typed'].post).toMatchObject({
      operationId: 'fn.typed',
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Function.typed' } } } },
    })
    expect(components.schemas['Function.typed'].properties.id).toEqual({ type: 'string' })
    expect(paths['/api/fn/shaped'].post.responses[200].content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/Result.shaped',
    })
    expect(components.schemas['Result.shaped'].properties).toEqual({ n: { type: 'number' } })
    expect(paths['/api/fn/ticks'].post.responses[200].content).toHaveProperty('text/event-stream')
    expect(paths['/api/fn/reports/{day}'].get.parameters).toMatchObject([{ name: 'day', in: 'path' }])
    expect(Object.keys(paths['/api/fn/any']).toSorted()).toEqual(['delete', 'get', 'patch', 'post', 'put'])
    expect(paths['/api/fn/any'].get.operationId).toBe('fn.one')
    expect(paths['/api/fn/internal']).toBeUndefined()
    expect((await server.service.get('/openapi.json')).body.paths['/api/fn/internal'].post.security).toEqual([
      { serviceKey: [] },
    ])
  })

  test('[FN-19] references of a schema point to its place in the document', async () => {
    const { body } = await server.anonymous.get('/openapi.json')
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference ?? '')
    expect(references.some((reference) => reference.startsWith('#/components/schemas/Function.nested'))).toBe(true)
    for (const reference of references) {
      const steps = reference.slice(2).split('/')
      expect(steps.reduce((value, step) => value?.[step], body)).toBeDefined()
    }
    const ids = Object.values(body.paths as Record<string, Record<string, { operationId?: string }>>).flatMap((path) =>
      Object.values(path).flatMap(({ operationId }) => operationId ?? []),
    )
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describeServer('described functions without a schema', { config: {}, settings }, (server) => {
  test('[FN-19] who may not read the schema sees no functions', async () => {
    const { paths } = (await server.anonymous.get('/openapi.json')).body
    expect(paths['/api/fn/typed']).toBeUndefined()
  })
})
