/** `sort`: the order of every type, of nulls and ties, and invalid sorts. */
import { beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { thingsPath as base, thingsWith } from '../../harness/records/things.ts'
import { describeServer } from '../../harness/server.ts'

const loose = '/api/db/shared/tables/loose'

const number = { type: 'number' } as const
const keys = {
  k1: number,
  k2: number,
  k3: number,
  k4: number,
  k5: number,
  k6: number,
  k7: number,
  k8: number,
  k9: number,
}
const config = {
  databases: { shared: { tables: { things: thingsWith(keys), loose: { access: open } } } },
} as const

const rows = [
  { id: 'a', name: 'b', rank: 2, done: true, due: '2026-01-01T00:00:00.000Z', secret: 'z' },
  { id: 'b', name: 'B', rank: 10, done: false, due: '2025-12-31T23:00:00.000-02:00', secret: 'y' },
  { id: 'c', name: 'a', rank: -1, done: false, secret: 'x' },
  { id: 'd', name: '\u{1F600}', rank: 2, secret: 'w' },
  { id: 'e', name: '\uFF21', rank: 2, done: true, due: '1999-01-01T00:00:00.000Z' },
  { id: 'f' },
  { id: 'g', name: '', rank: 0.5 },
]

describeServer('sort', { config }, (server) => {
  beforeAll(async () => {
    expect((await server.service.post(`${base}/batch`, { inserts: rows })).status).toBe(200)
  })

  const sorted = (rule: string, sort: string, ids: string): Scenario => ({
    name: `[${rule}] ${JSON.stringify(sort)}`,
    path: base,
    query: { sort },
    status: 200,
    ids: [...ids],
  })
  const refused = (sort: string, why: string): Scenario => ({
    name: `[DB-LIST-13] ${why}: ${JSON.stringify(sort).slice(0, 60)}`,
    path: base,
    query: { sort },
    status: 400,
    names: 'sort',
    lacks: ['w', 'y'].map((value) => `"secret":"${value}"`),
  })

  runScenarios(
    server,
    [base],
    [
      sorted('DB-LIST-11', 'id:asc', 'abcdefg'),
      sorted('DB-LIST-11', 'id:desc', 'gfedcba'),
      sorted('DB-LIST-12', 'name:asc', 'fgbcaed'),
      sorted('DB-LIST-12', 'name:desc', 'deacbgf'),
      sorted('DB-LIST-11, DB-LIST-12', 'rank:asc', 'fcgadeb'),
      sorted('DB-LIST-11, DB-LIST-12', 'rank:desc', 'bedagcf'),
      sorted('DB-LIST-12', 'done:asc', 'dfgbcae'),
      sorted('DB-LIST-12', 'done:desc', 'eacbgfd'),
      sorted('DB-LIST-12', 'due:asc', 'cdfgeab'),
      sorted('DB-LIST-12', 'due:desc', 'baegfdc'),
      sorted('DB-LIST-11', 'rank:asc,name:desc', 'fcgdeab'),
      sorted('DB-LIST-11', 'rank:desc,name:asc', 'baedgcf'),
      sorted('DB-LIST-11', 'done:asc,id:desc', 'gfdcbea'),
      sorted('DB-LIST-11', 'k1:asc', 'abcdefg'),
      sorted('DB-LIST-11', 'k1:desc', 'gfedcba'),
      sorted('DB-LIST-11', 'k1:asc,k2:asc,k3:asc,k4:asc,k5:asc,k6:asc,k7:asc,k8:desc', 'gfedcba'),
      sorted('DB-LIST-11', '["done:asc","id:desc"]', 'gfdcbea'),
      sorted('DB-LIST-11', '["rank"]', 'fcgadeb'),
      refused('["name:asc","secret:desc"]', 'a hidden field in an array'),
      refused('["name:asc",1]', 'an array with a number'),
      refused('["name:asc"', 'an array that is cut'),
      refused('[]', 'an empty array'),
      refused('nope:asc', 'an unknown field'),
      refused('Name:asc', 'another case'),
      refused('secret:asc', 'a hidden field'),
      refused('name:asc,secret:desc', 'a hidden field second'),
      refused('name:up', 'an unknown direction'),
      refused('name:ASC', 'a direction of another case'),
      refused('name:', 'no direction after the colon'),
      refused(':asc', 'no field'),
      refused('', 'nothing'),
      refused('name:asc,', 'an empty key'),
      refused('name:asc:desc', 'two directions'),
      refused('name asc', 'SQL'),
      refused('name:asc; DROP TABLE things', 'SQL'),
      refused('name" DESC--:asc', 'SQL'),
      refused('(SELECT secret):asc', 'SQL'),
      refused('__proto__:asc', 'a member of every object'),
      refused('name\0:asc', 'NUL'),
      refused('k1:asc,k2:asc,k3:asc,k4:asc,k5:asc,k6:asc,k7:asc,k8:asc,k9:asc', 'nine keys'),
      refused('x'.repeat(4000), 'a very long name'),
    ],
  )

  test('[DB-LIST-13] a hidden field and an unknown one get the same error', async () => {
    const hidden = await server.anonymous.get(base + query({ sort: 'secret:asc' }))
    const unknown = await server.anonymous.get(base + query({ sort: 'secreu:asc' }))
    expect(hidden.text.replaceAll('secret', 'X')).toBe(unknown.text.replaceAll('secreu', 'X'))
  })

  test('[DB-LIST-11] the service key may sort by a hidden field', async () => {
    const { body } = await server.service.get(base + query({ sort: 'secret:asc' }))
    expect(body.items.map(({ id }: { id: string }) => id).join('')).toBe('efgdcba')
  })

  test('[DB-TABLE-14] a table without a schema can be sorted by any field', async () => {
    const inserts = [{ id: 'a', 'my rank': 3 }, { id: 'b', 'my rank': 1 }, { id: 'c' }, { id: 'd', 'my rank': 2 }]
    expect((await server.anonymous.post(`${loose}/batch`, { inserts })).status).toBe(200)
    const ascending = await server.anonymous.get(loose + query({ sort: 'my rank:asc' }))
    expect(ascending.body.items.map(({ id }: { id: string }) => id).join('')).toBe('cbda')
    const descending = await server.anonymous.get(loose + query({ sort: 'my rank:desc' }))
    expect(descending.body.items.map(({ id }: { id: string }) => id).join('')).toBe('adbc')
  })
})
