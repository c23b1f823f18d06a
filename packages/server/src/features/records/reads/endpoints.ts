/** Endpoints that read records: list, count, search and get. */
import { z } from '../../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import {
  cursorParam,
  flagParam,
  ignoredParam,
  integerParam,
  limitParam,
  listParam,
  textParam,
} from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import {
  aggregateGroupsDefault,
  aggregateGroupsMax,
  aggregateTimeoutMs,
  includedRelationsMax,
  listLimitDefault,
  listLimitMax,
  orFilterConditionsMax,
  previewCharsMax,
} from '../../../limits/api.ts'
import { scanWaitMs } from '../../../limits/sqlite.ts'
import type { Aggregates } from '../aggregates/aggregate.ts'
import { search } from '../search/search.ts'
import { common, type ResolveCall, readScope, recordSchema, tablePaths, withTable } from '../table-endpoint.ts'
import { countRows } from '../totals/totals.ts'
import { explained } from './explain/explain.ts'
import { type ListDeps, list } from './list.ts'
import { count, get } from './read.ts'

const paging = {
  limit: integerParam({ max: listLimitMax, clamps: true, default: listLimitDefault, description: 'Records per page' }),
  page: integerParam({ description: 'Page number, instead of offset' }),
  perPage: integerParam({ max: listLimitMax, clamps: true, description: 'Records per page, with page' }),
  offset: integerParam({ min: 0, description: 'Records to skip, instead of page' }),
}
export const filtering = {
  filter: textParam(
    'Conditions that must all match: [["field","==",value],…]; with ["field","near",[longitude,latitude,"5km"]] items have `distances`',
  ),
  orFilter: textParam(`Conditions of which at least one must match, at most ${orFilterConditionsMax}`),
  filters: textParam('Alias of filter'),
  orFilters: textParam('Alias of orFilter'),
}
const fields = listParam('Fields to return: name,title')

const explain = flagParam('1: the response has `explain`; with a service key')
const include = textParam(
  `Related records to return: {"author":{},"comments":{"limit":3}}; at most ${includedRelationsMax} relations`,
)
const preview = integerParam({
  max: previewCharsMax,
  description: 'Cuts texts and JSON to this many characters; items name the cut fields in `$cut`; with a service key',
})
const versions = flagParam('1: the response has `versions`')

const listQuery = z.object({
  ...filtering,
  sort: listParam('field:asc or field:desc, comma-separated; field.distance of a geo field with near'),
  fields,
  include,
  ...paging,
  after: cursorParam('Cursor to page forward from; empty for the start'),
  before: cursorParam('Cursor to page backward from; empty for the end'),
  versions,
  preview,
  check: flagParam('1: the response has `check`, and `versions`; for a list from its start'),
  explain,
})
const ofList = ignoredParam('lists')
const countQuery = z.object({ ...filtering, explain })
const getQuery = z.object({ fields, include })
const searchQuery = z.object({
  q: textParam('Words that must all occur; the last one matches as a prefix'),
  ...filtering,
  sort: ofList,
  fields,
  include,
  ...paging,
  after: cursorParam('Cursor of a page that ended early'),
  highlightPre: textParam('Opening tag of a highlight; default <mark>'),
  highlightPost: textParam('Closing tag of a highlight; default </mark>'),
  highlight: textParam('Both tags as a JSON array: ["<b>","</b>"]'),
  versions,
  preview,
  explain,
})

const explanation = z
  .object({
    sql: z.string(),
    parameters: z.array(z.unknown()),
    plan: z.array(z.string()).meta({ description: 'Steps in the words of the engine, indented by depth' }),
    rowsScanned: z.number().optional().meta({ description: 'Where the engine counts them' }),
    ms: z.number(),
    suggestion: z
      .object({ fields: z.array(z.string()) })
      .optional()
      .meta({ description: 'An index that would help' }),
    statements: z.array(z.unknown()).optional().meta({ description: 'All statements, where there are several' }),
  })
  .optional()
  .meta({ description: 'With `explain=1`: the statement of the page, its plan and its duration' })

const aggregateQuery = z.object({
  group: textParam(
    'Keys: ["status",{"day":"createdAt","tz":"Europe/Berlin","as":"day"},{"bucket":"price","width":10}]',
  ),
  measures: textParam('Measures by name: {"n":"count","total":{"sum":"amount"}}; also avg, min, max, countDistinct'),
  having: textParam('Conditions on groups: [["n",">",5]]'),
  sort: listParam('name:asc or name:desc of keys and measures, comma-separated'),
  limit: limitParam({ max: aggregateGroupsMax, default: aggregateGroupsDefault, description: 'Groups' }),
  q: textParam('Words: only the records that a search finds'),
  ...filtering,
  fields: ofList,
  explain,
})

const page = z.object({
  items: z.array(recordSchema),
  versions: z.array(z.int()).optional().meta({ description: 'Of each item the version of its row; with `versions=1`' }),
  check: z.object({}).optional().meta({
    description: 'With `check=1`: the check of a transaction that the list still has these records in these versions',
  }),
  total: z.number().nullable(),
  page: z.number().nullable(),
  perPage: z.number().nullable(),
  hasMore: z.boolean().nullable(),
  cursor: z.string().nullable(),
  truncated: z.literal(true).optional().meta({
    description: 'The page ended before a record that would have made the response too large; `cursor` continues it',
  }),
  explain: explanation,
})

/** The wait of a scan and its time limit, twice: it may wait for an equal one. */
const aggregateAnswerSeconds = (2 * (scanWaitMs + aggregateTimeoutMs)) / 1000

const viewable = { ...common, answersViewedUser: true } as const

export interface ReadEndpointsDeps extends ListDeps {
  readonly resolve: ResolveCall
  readonly aggregates: Aggregates
}

/** Counts in the database, so that there is a statement to explain. */
const uncached = { count: countRows }

function aggregateEndpoint(resolve: ResolveCall, aggregates: Aggregates): Endpoint {
  return endpoint({
    ...viewable,
    name: 'records.aggregate',
    isExpensive: true,
    method: 'GET',
    paths: tablePaths('/aggregate'),
    summary: 'Group and aggregate records',
    description:
      'Groups by fields, by `hour`, `day`, `week`, `month` or `year` in a time zone, or by `bucket`; without `group` one group. A query that takes longer than 2 seconds is refused with `query-timeout`.',
    scope: readScope,
    query: aggregateQuery,
    answerSeconds: aggregateAnswerSeconds,
    replies: {
      200: {
        description: 'The groups, each with its keys and measures',
        schema: z.object({
          groups: z.array(recordSchema),
          truncated: z.boolean().meta({ description: 'Whether there are more groups' }),
          explain: explanation,
        }),
      },
    },
    errors: [404],
    handle: async (call) => {
      const { filter, filters, orFilter, orFilters, explain } = call.query
      const explainable = { filter, filters, orFilter, orFilters, explain }
      return explained(await resolve(call), explainable, (table) => aggregates.aggregate(table, call.query))
    },
  })
}

export function createReadEndpoints({ resolve, aggregates, ...listDeps }: ReadEndpointsDeps): readonly Endpoint[] {
  const { totals, limits } = listDeps
  return [
    endpoint({
      ...viewable,
      name: 'records.list',
      isExpensive: 'by query',
      method: 'GET',
      paths: tablePaths(),
      summary: 'List records',
      description:
        'Offset mode (default, with `page` or `offset`) returns `total`; cursor mode (with `after` or `before`) returns `hasMore` and `cursor`.',
      scope: readScope,
      query: listQuery,
      replies: { 200: { description: 'A page of records', schema: page } },
      errors: [404],
      handle: (call) =>
        withTable(resolve(call), (table) =>
          explained(table, call.query, (read) => list(read, call.query, { ...listDeps, admit: call.admit })),
        ),
    }),
    endpoint({
      ...viewable,
      name: 'records.count',
      method: 'GET',
      paths: tablePaths('/count'),
      summary: 'Count records',
      scope: readScope,
      query: countQuery,
      replies: {
        200: { description: 'How many match', schema: z.object({ total: z.number(), explain: explanation }) },
      },
      errors: [404],
      handle: async (call) =>
        explained(await resolve(call), call.query, async (table) =>
          json(await count(table, call.query, call.query.explain ? uncached : totals)),
        ),
    }),
    endpoint({
      ...viewable,
      name: 'records.search',
      isExpensive: true,
      method: 'GET',
      paths: tablePaths('/search'),
      summary: 'Full-text search',
      description:
        'Words are combined with AND, the last one also matches as a beginning; best matches first, with `highlights`. A page that ended early is continued by `after`.',
      scope: readScope,
      query: searchQuery,
      replies: { 200: { description: 'A page of records, best first', schema: page } },
      errors: [404],
      handle: async (call) =>
        explained(await resolve(call), call.query, (table) => search(table, call.query, { totals, limits })),
    }),
    aggregateEndpoint(resolve, aggregates),
    endpoint({
      ...viewable,
      name: 'records.get',
      method: 'GET',
      paths: tablePaths('/:id'),
      summary: 'Get one record',
      scope: readScope,
      query: getQuery,
      replies: { 200: { description: 'The record', schema: recordSchema } },
      errors: [404],
      handle: (call) => withTable(resolve(call), (table) => get(table, call.params.id ?? '', call.query, limits)),
    }),
  ]
}
