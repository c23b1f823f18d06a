/** What a view of a table shows, from its URL: the query, the columns, and the cache of its rows. */
import { useMemo, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import type { UrlState } from '../../../app/url-state.ts'
import { type Column, columnsOf, fieldNames, groupsOf } from '../grid/columns.ts'
import type { TableAddress } from '../location.ts'
import type { RowCache } from '../rows/row-cache.ts'
import { type RowQuery, readRowQuery } from '../rows/row-query.ts'
import { type KeptSettings, useTableSettings } from '../views/use-table-settings.ts'
import { parseColumns } from './columns-text.ts'
import { useFoundFields, useRows } from './use-rows.ts'

export interface View {
  readonly query: RowQuery
  /** All fields of the table that are known. */
  readonly names: readonly string[]
  /** The fields that are shown; null for all. */
  readonly shown: readonly string[] | null
  readonly columns: readonly Column[]
  readonly cache: RowCache
  readonly revision: number
  readonly settings: KeptSettings
}

export function useView(address: TableAddress, table: TableDescription, url: UrlState): View {
  const [filter, sort, words, columnsText] = [url.get('filter'), url.get('sort'), url.get('q'), url.get('columns')]
  const query = useMemo(() => readRowQuery((name) => ({ filter, sort, q: words })[name] ?? null), [filter, sort, words])
  const declared = useMemo(() => Object.keys(table.fields), [table])
  const [found, setFound] = useState<readonly string[]>([])
  const names = useMemo(() => fieldNames(table, found), [table, found])
  const shown = useMemo(() => (columnsText === null ? null : parseColumns(columnsText, names)), [columnsText, names])
  const settings = useTableSettings(table, url)
  const { widths } = settings
  const columns = useMemo(() => columnsOf(table, names, { shown, widths }), [table, names, shown, widths])
  const groups = useMemo(() => groupsOf(table, columns), [table, columns])
  const { cache, revision } = useRows(address, query, groups, table)
  const fresh = useFoundFields(cache, revision, declared, table.schemaless)
  if (fresh.some((name) => !found.includes(name))) setFound([...new Set([...found, ...fresh])])
  return { query, names, shown, columns, cache, revision, settings }
}
