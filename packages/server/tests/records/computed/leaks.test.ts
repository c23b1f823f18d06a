/** Computed fields reveal nothing of what the caller may not read, and access rules see their values. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { where } from '../../../src/config/define.ts'
import { query } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any
const schema = {
  price: { type: 'number' },
  cost: { type: 'number' },
  name: { type: 'string' },
  double: { type: 'number', computed: (f: Fields) => f.price.times(2) },
  label: { type: 'string', computed: (f: Fields) => f.name.upper() },
  margin: { type: 'number', computed: (f: Fields) => f.price.minus(f.cost) },
  far: { type: 'number', computed: (f: Fields) => f.margin.times(10) },
}
const hidden = ['cost', 'margin', 'far']
const config = {
  api: { schemaEndpoint: true },
  databases: {
    shared: {
      tables: {
        items: { schema, hidden, access: { read: () => ({ double: 20 }), insert: true, update: true } },
        blind: { schema, hidden, access: { insert: true, update: true } },
        bounded: { schema, hidden, access: { read: true, insert: () => where('double', '<=', 10), update: true } },
      },
    },
  },
}
const items = '/api/db/shared/tables/items'
const blind = '/api/db/shared/tables/blind'
const bounded = '/api/db/shared/tables/bounded'

describeServer('computed fields', { config }, (server) => {
  beforeAll(async () => {
    const inserts = [
      { id: 'seen', price: 10, cost: 3, name: 'a' },
      { id: 'denied', price: 11, cost: 4, name: 'b' },
    ]
    for (const base of [items, blind])
      expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
  })

  const probes = (name: string): readonly string[] => [
    query({ filter: [[name, '>', 1]] }),
    query({ orFilter: [[name, '==', 7]] }),
    query({ sort: `${name}:asc` }),
    query({ fields: name }),
  ]
  const aggregates = (name: string): readonly string[] => [
    query({ group: [name], measures: { n: 'count' } }),
    query({ measures: { n: { sum: name } } }),
    query({ measures: { n: { max: name } } }),
    query({ measures: { n: 'count' }, filter: [[name, '>', 1]] }),
  ]

  describe.each(['margin', 'far'])('%s', (name) => {
    test('[DB-COMPUTED-5] is an unknown field in every parameter', async () => {
      const paths = (field: string) => [
        ...probes(field).map((one) => items + one),
        ...aggregates(field).map((one) => `${items}/aggregate${one}`),
        ...probes(field)
          .slice(0, 2)
          .map((one) => `${items}/count${one}`),
      ]
      // Of the same length.
      const unknown = paths('x'.repeat(name.length))
      for (const [at, path] of paths(name).entries()) {
        const answer = await server.anonymous.get(path)
        expectRefusal(answer, 400)
        const other = await server.anonymous.get(unknown[at] as string)
        expect(answer.text.replaceAll(name, '?')).toBe(other.text.replaceAll('x'.repeat(name.length), '?'))
      }
    })

    test('[DB-COMPUTED-5] is in no response', async () => {
      for (const answer of [
        await server.anonymous.get(items),
        await server.anonymous.get(`${items}/seen`),
        await server.anonymous.patch(`${items}/seen`, { name: 'c' }),
        await server.anonymous.get('/api/schema'),
        await server.anonymous.get('/openapi.json'),
      ]) {
        expect(answer.status).toBe(200)
        expect(answer.text).not.toContain(`"${name}"`)
      }
    })
  })

  test('[DB-COMPUTED-1] a rule about a computed field decides by its value', async () => {
    const { body } = await server.anonymous.get(items + query({ filter: [['label', 'in', ['A', 'B', 'C']]] }))
    expect(body.items.map(({ id }: { id: string }) => id)).toEqual(['seen'])
    expect((await server.anonymous.post(bounded, { price: 5 })).body.double).toBe(10)
    const before = await server.dump(bounded)
    expect((await server.anonymous.post(bounded, { price: 6 })).status).toBe(401)
    expect((await server.anonymous.post(bounded, {})).status).toBe(401)
    expect(await server.dump(bounded)).toEqual(before)
  })

  test('[DB-COMPUTED-5] a caller that may only write is sent no computed value', async () => {
    const inserted = await server.anonymous.post(blind, { price: 5 })
    expect(inserted.status).toBe(201)
    expect(Object.keys(inserted.body).sort()).toEqual(['createdAt', 'id', 'price', 'updatedAt'])
  })

  test('[DB-COMPUTED-9] computed fields are read-only in the descriptions of the API', async () => {
    const described = (await server.anonymous.get('/api/schema')).body
    expect(described.tables.items.fields.double).toMatchObject({ type: 'number', readOnly: true })
    expect(described.tables.items.fields.price).not.toHaveProperty('readOnly')
    const { components } = (await server.anonymous.get('/openapi.json')).body
    expect(components.schemas['Table.items'].properties.double).toEqual({ type: ['number', 'null'], readOnly: true })
    expect(components.schemas['Table.items'].properties.price).toEqual({ type: ['number', 'null'] })
  })
})
