/** Which table a URL shows, and the paths of a table on the page and in the API. */
import type { Schema, TableDescription } from '../../app/queries.ts'

/** A table, of an instance where its namespace has them. */
export interface TableAddress {
  readonly namespace: string
  readonly instanceId: string | null
  readonly table: string
}

/** What a path under `/data` names; as much of it as is there. */
export interface DataLocation {
  readonly namespace: string | null
  readonly instanceId: string | null
  readonly table: string | null
}

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Parses `/data/namespace/table` and `/data/namespace/instance/table`. */
export function parseLocation(path: string, namespaces: Schema['namespaces']): DataLocation {
  const [, , namespace = null, ...rest] = path.split('/').map(decoded)
  if (namespace === null || namespace === '') return { namespace: null, instanceId: null, table: null }
  const [first = null, second = null] = rest
  return namespaces[namespace]?.instance
    ? { namespace, instanceId: first, table: second }
    : { namespace, instanceId: null, table: first }
}

/** The path of the page. */
export function pagePath({ namespace, instanceId, table }: DataLocation): string {
  const parts = [namespace, instanceId, table].filter((part) => part !== null)
  return ['/data', ...parts.map(encodeURIComponent)].join('/')
}

/** The path of the API, which records and reads follow. */
export function apiPath({ namespace, instanceId, table }: TableAddress): string {
  const instance = instanceId === null ? '' : `/${encodeURIComponent(instanceId)}`
  return `/api/db/${encodeURIComponent(namespace)}${instance}/tables/${encodeURIComponent(table)}`
}

export const findTable = (schema: Schema, namespace: string, table: string): TableDescription | undefined =>
  Object.values(schema.tables).find((one) => one.namespace === namespace && one.name === table)

export interface ReferringField {
  readonly table: string
  readonly field: string
}

/** The fields of the namespace that refer to a table. */
export const referringTo = (
  schema: Schema,
  { namespace, table }: Pick<TableAddress, 'namespace' | 'table'>,
): readonly ReferringField[] =>
  tablesOf(schema, namespace).flatMap((other) =>
    Object.entries(other.fields).flatMap(([field, { references }]) =>
      references === table ? [{ table: other.name, field }] : [],
    ),
  )

/** The tables of a namespace in the order of their declaration. */
export const tablesOf = (schema: Schema, namespace: string): readonly TableDescription[] =>
  Object.values(schema.tables).filter((one) => one.namespace === namespace)
