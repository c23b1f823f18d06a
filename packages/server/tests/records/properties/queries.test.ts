/**
 * Random data under random rules, read by lists, searches and aggregates with random conditions on fields, places and
 * through relations and random `include`s, compared with an independent implementation on plain arrays. `PLINTH_SOAK`
 * multiplies the number of cases; 20 makes 10,000 per engine.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Client, query } from '../../harness/client.ts'
import { aggregateOf } from '../../harness/records/aggregate-oracle.ts'
import type { Row as FlatRow } from '../../harness/records/filter-oracle.ts'
import { isLocation, metersBetween } from '../../harness/records/queries/geo-oracle.ts'
import { type QueryCase, queryCase } from '../../harness/records/queries/query-cases.ts'
import {
  computedOf,
  config,
  data,
  hidden,
  relations,
  rules,
  searchOptions,
  tables,
} from '../../harness/records/queries/query-data.ts'
import {
  centersOf,
  createOracle,
  type Data,
  type OracleQuery,
  type Row,
  type Rules,
  wireCondition,
  wireInclude,
  wireSort,
} from '../../harness/records/queries/query-oracle.ts'
import { rankedIds } from '../../harness/records/ranked-oracle.ts'
import { describeServer } from '../../harness/server.ts'

const cases = 500 * Number(process.env.PLINTH_SOAK ?? 1)
const queriesPerData = 20

let instances = 0

/** Inserts the rows into an instance of their own; bosses last, since they refer to users. */
async function store(service: Client, rows: Data): Promise<string> {
  const base = `/api/db/space/i${instances++}`
  const operations = tables.flatMap((table) =>
    (rows[table] ?? []).map(({ bossId: _, ...insert }) => ({ table, insert })),
  )
  const bosses = (rows.users ?? []).map(({ id, bossId }) => ({ table: 'users', update: { id, data: { bossId } } }))
  const { status, text: answer } = await service.post(`${base}/transaction`, { operations: [...operations, ...bosses] })
  if (status !== 200) throw new Error(answer)
  return base
}

/** The stored rows, whose values are those that were sent and those that are computed from them. */
async function readStored(service: Client, base: string, sent: Data): Promise<Data> {
  const stored: Record<string, readonly Row[]> = {}
  for (const table of tables) {
    const { items } = (await service.get(`${base}/tables/${table}`)).body
    const times = (id: unknown) => {
      const { createdAt, updatedAt } = items.find((item: Row) => item.id === id)
      return { createdAt, updatedAt }
    }
    stored[table] = (sent[table] ?? []).map((row) => ({ ...row, ...computedOf(table, row), ...times(row.id) }))
    expect(items.toSorted(byId)).toEqual(stored[table]?.toSorted(byId))
    // In the order of the stored members.
    stored[table] = items
  }
  return stored
}
const byId = (a: Row, b: Row): number => (String(a.id) < String(b.id) ? -1 : 1)

/** One query of one caller, and what the oracle knows of it. */
interface Requested {
  readonly client: Client
  readonly path: string
  readonly oracle: ReturnType<typeof createOracle>
  readonly query: OracleQuery
  readonly groups: Readonly<Record<string, unknown>>
  readonly include: object | undefined
}

/** The items without their distances, which are compared on their own. */
function measuredItems(items: readonly Row[], all: readonly Row[], { query }: Requested): Row[] {
  const centers = centersOf([...query.filter, ...query.orFilter])
  return items.map(({ distances, highlights: _, ...item }, at) => {
    const expected = Object.fromEntries(
      [...centers].map(([name, center]) => {
        const location = all[at]?.[name]
        return [name, isLocation(location) ? metersBetween(location, center) : null]
      }),
    )
    expect(Object.keys(distances ?? {})).toEqual(Object.keys(expected))
    for (const [name, meters] of Object.entries(distances ?? {}))
      if (meters === null || expected[name] === null) expect(meters).toBe(expected[name])
      else expect(Math.abs(meters - Number(expected[name]))).toBeLessThan(0.5)
    return item
  })
}

/** Checks a list, its pages, its count, and its first record. Returns the number of records that the caller gets. */
async function checkList(requested: Requested, limit: number): Promise<number> {
  const { client, path, oracle, query: one, groups, include } = requested
  const all = oracle.list({ ...one, fields: undefined, include: {} })
  const expected = oracle.list(one)
  const parameters = { ...groups, fields: one.fields?.join(','), sort: wireSort(one.sort), include }
  const list = await client.get(path + query(parameters))
  if (!expected || !all) {
    expect(list.status).toBe(403)
    return 0
  }
  expect(list.status, list.text).toBe(200)
  expect(measuredItems(list.body.items, all, requested)).toEqual(expected)
  expect(list.body.total).toBe(expected.length)
  expect((await client.get(`${path}/count${query(groups)}`)).body).toEqual({ total: expected.length })
  const paged: Row[] = []
  for (let after: string | null = ''; after !== null; ) {
    const { body, status, text } = await client.get(path + query({ ...parameters, after, limit }))
    expect(status, text).toBe(200)
    paged.push(...body.items)
    after = body.hasMore ? body.cursor : null
  }
  expect(measuredItems(paged, all, requested)).toEqual(expected)
  const [first] = all
  if (first) {
    const record = await client.get(`${path}/${first.id}${query({ include, fields: one.fields?.join(',') })}`)
    expect(record.body).toEqual(expected[0])
  }
  return expected.length
}

/** The selected rows that a search finds, best first; null where the caller may not read the table. */
function found({ oracle, query: one }: Requested, q: string | undefined): readonly Row[] | null {
  const selected = oracle.select(one)
  if (!selected || q === undefined) return selected
  const ids = rankedIds(selected as never, q, searchOptions)
  return ids.map((id) => selected.find((row) => row.id === id) as Row)
}

async function checkSearch(requested: Requested, q: string): Promise<number> {
  const { client, path, oracle, query: one, groups, include } = requested
  const { status, body, text } = await client.get(
    `${path}/search${query({ q, ...groups, fields: one.fields?.join(','), include })}`,
  )
  const rows = found(requested, q)
  if (!rows) {
    expect(status).toBe(403)
    return 0
  }
  expect(status, text).toBe(200)
  const expected = rows.map((row) => oracle.shown(one.table, row, one.fields, one.include))
  expect(measuredItems(body.items, rows, requested)).toEqual(expected)
  expect(body.total).toBe(expected.length)
  return expected.length
}

async function checkAggregate(
  requested: Requested,
  { aggregate, q }: Extract<QueryCase, { kind: 'aggregate' }>,
): Promise<number> {
  const path = `${requested.path}/aggregate${query({ ...aggregate, sort: wireSort(aggregate.sort), ...requested.groups, q })}`
  let answer = await requested.client.get(path)
  // Where other tests leave the scan too little of the processor.
  for (let times = 0; answer.body.slug === 'query-timeout' && times < 10; times++)
    answer = await requested.client.get(path)
  const rows = found(requested, q)
  if (rows) expect(answer.body).toEqual(aggregateOf(rows as readonly FlatRow[], aggregate, true))
  else expect(answer.status).toBe(403)
  return rows?.length ?? 0
}

describeServer('random queries', { config }, (server) => {
  async function check(base: string, stored: Data, of: Rules, one: QueryCase): Promise<number> {
    const { table, filter, orFilter, include } = one.query
    const requested: Requested = {
      client: server.as({ id: 'u', custom: { rules: of } }),
      path: `${base}/tables/${table}`,
      oracle: createOracle(stored, relations, of, hidden),
      query: one.query,
      groups: {
        filter: filter.map(wireCondition),
        orFilter: orFilter.length > 0 ? orFilter.map(wireCondition) : undefined,
      },
      include: Object.keys(include).length > 0 ? wireInclude(include) : undefined,
    }
    if (one.kind === 'list') return checkList(requested, one.limit)
    return one.kind === 'search' ? checkSearch(requested, one.q) : checkAggregate(requested, one)
  }

  test('[DB-INC-1, DB-INC-5, DB-REL-1, DB-REL-2, DB-REL-3, DB-GEO-8, DB-GEO-10, DB-AGG-8, DB-COMPUTED-6, DB-SEARCH-14] every answer is what a naive implementation gives', async () => {
    let withRows = 0
    await fc.assert(
      fc.asyncProperty(
        data,
        fc.array(fc.tuple(rules, queryCase), { minLength: queriesPerData, maxLength: queriesPerData }),
        async (rows, queries) => {
          const base = await store(server.service, rows)
          const stored = await readStored(server.service, base, rows)
          for (const [of, one] of queries) if ((await check(base, stored, of, one)) > 0) withRows++
        },
      ),
      { numRuns: Math.ceil(cases / queriesPerData), endOnFailure: true },
    )
    // Of the others the rule or the condition leaves nothing.

    expect(withRows).toBeGreaterThan(cases / 4)
  }, 3_600_000)
})
