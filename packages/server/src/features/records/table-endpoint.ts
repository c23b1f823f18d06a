/** What the endpoints of a table have in common: paths, scopes, and the table that the path of a request names. */
import { z } from '../../base/schemas/z.ts'
import { isJsonObject } from '../../base/text/json.ts'
import type { Call, Params } from '../../http/endpoint.ts'
import { readScopeOf, type TableCall, type Tables } from './resolve-table.ts'
import type { Body } from './writes/input.ts'

export const common = { tag: 'Database', credentials: 'rules', rateLimit: 'db' } as const

const bases = ['/api/db/:namespace/tables/:table', '/api/db/:namespace/:instanceId/tables/:table'] as const

/** The paths of an endpoint, in a static and in a dynamic namespace. */
export const tablePaths = (rest = ''): string[] => bases.map((base) => base + rest)

export const readScope = ({ table }: Params): string => readScopeOf(table)
/** The scope that a service key needs to write the rows of a table. */
export const writeScopeOf = (tableName: string | undefined): string => `db:table:${tableName}:write`
export const writeScope = ({ table }: Params): string => writeScopeOf(table)

/** The table that the path of a request names, for its caller. Throws as `Tables.resolve`. */
export type ResolveCall = (call: Call) => TableCall | Promise<TableCall>

export const createResolveCall =
  (tables: Tables): ResolveCall =>
  ({ params, caller }) => {
    const { namespace = '', instanceId = null, table = null } = params
    return tables.resolve({ namespace, instanceId, tableName: table }, caller)
  }

/** Passes on a table that was resolved at once, or later. */
export const withTable = <Result>(
  table: TableCall | Promise<TableCall>,
  use: (table: TableCall) => Promise<Result>,
): Promise<Result> => (table instanceof Promise ? table.then(use) : use(table))

/** zod's own `record` would drop a member called `__proto__`, which has to be rejected instead. */
export const recordSchema = z
  .unknown()
  .refine((value): value is Body => isJsonObject(value), 'must be an object')
  .meta({ type: 'object', additionalProperties: true }) as z.ZodType<Body>
