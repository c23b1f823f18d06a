/** Where a table is shown. */
import type { Schema, TableDescription } from './queries.ts'

/** The path of a table; that of its namespace's instances where it has them. */
export function tablePath({ namespace, name }: TableDescription, namespaces: Schema['namespaces']): string {
  const base = `/data/${encodeURIComponent(namespace)}`
  return namespaces[namespace]?.instance
    ? `${base}?table=${encodeURIComponent(name)}`
    : `${base}/${encodeURIComponent(name)}`
}
