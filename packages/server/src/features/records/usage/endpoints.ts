/** The endpoint of the dashboard that shows what tables and their indexes take on disk. */

import type { Caller } from '../../../access/caller.ts'
import { permitsScope } from '../../../access/service-keys.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { type Measure, precisions, type StoredTable } from '../../../engines/table-storage/table-storage.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import type { Table } from '../../../query/table.ts'
import { type Namespaces, readScopeOf } from '../resolve-table.ts'
import { indexesOf } from '../schema/migration-plan.ts'
import { type TableUsage, usageKeyOf } from './table-usage.ts'

export interface UsageEndpointsDeps {
  readonly usage: TableUsage
  readonly namespaces: () => Namespaces
}

const measureSchema = z.object({
  value: z.number(),
  precision: z.enum(precisions).meta({
    description: '`estimate` from a part of a large table; `at-least` where only a part of a large index was visited',
  }),
})

const storedSchema = z.object({
  rows: measureSchema,
  bytes: measureSchema.meta({ description: 'Without indexes' }),
  indexes: z.array(
    z.object({
      kind: z.enum(['key', 'unique', 'index', 'search']),
      fields: z.array(z.string()).meta({ description: 'Empty for an index that the configuration does not declare' }),
      bytes: measureSchema,
    }),
  ),
})

const usageSchema = z.object({
  measuredAt: z.iso.datetime().nullable().meta({ description: 'Null before the first measurement' }),
  isMeasuring: z.boolean(),
  tables: z.array(
    z.object({
      namespace: z.string(),
      table: z.string(),
      isPerInstance: z.boolean(),
      stored: storedSchema
        .nullable()
        .meta({ description: 'Null before the first measurement, and for instances that are files of their own' }),
    }),
  ),
})

const sum = (measures: readonly Measure[]): Measure => ({
  value: measures.reduce((total, { value }) => total + value, 0),
  precision: measures.find(({ precision }) => precision !== 'exact')?.precision ?? 'exact',
})

/** With the fields of the indexes, and what full-text searches read as one. */
function describe(table: Table, { rows, bytes, indexes }: StoredTable): z.output<typeof storedSchema> {
  const declared = new Map(indexesOf(table).map((index) => [index.name, index]))
  const search = indexes.filter(({ kind }) => kind === 'search')
  return {
    rows,
    bytes,
    indexes: [
      ...indexes
        .filter(({ kind }) => kind !== 'search')
        .map(({ name, kind, bytes }) => {
          const { fields = [], unique = false } = declared.get(name) ?? {}
          return kind === 'key'
            ? { kind: 'key' as const, fields: ['id'], bytes }
            : { kind: unique ? ('unique' as const) : ('index' as const), fields: [...fields], bytes }
        }),
      ...(search.length === 0
        ? []
        : [{ kind: 'search' as const, fields: [...table.search], bytes: sum(search.map(({ bytes }) => bytes)) }]),
    ],
  }
}

const permits = (caller: Caller, scope: string): boolean =>
  caller.kind === 'service' && permitsScope(caller.scopes, scope)

export const createUsageEndpoints = ({ usage, namespaces }: UsageEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    name: 'dashboard.tableUsage',
    method: 'GET',
    paths: [`${dashboardPath}/api/table-usage`],
    tag: 'Dashboard',
    summary: 'Get the rows and bytes of the tables that the caller may read, with their indexes',
    description:
      'As of the last measurement; the request starts another one in the background where that is old, and does not wait for it.',
    credentials: 'admin',
    rateLimit: 'global',
    isSecret: true,
    replies: { 200: { description: 'In the order of the configuration', schema: usageSchema } },
    handle({ caller }) {
      const measured = usage.read()
      const tables = [...namespaces().values()].flatMap(({ name: namespace, instance, tables }) =>
        [...tables.values()]
          .filter(({ table }) => permits(caller, readScopeOf(table.name)))
          .map(({ table }) => {
            const stored = measured?.tables.get(usageKeyOf(table))
            return {
              namespace,
              table: table.name,
              isPerInstance: instance,
              stored: stored ? describe(table, stored) : null,
            }
          }),
      )
      const measuredAt = measured && formatDatetime(measured.atMs)
      return json({ measuredAt, isMeasuring: usage.isMeasuring(), tables })
    },
  }),
]
