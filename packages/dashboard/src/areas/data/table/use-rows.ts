/** The cache of the rows of a view. It lives as long as the view's table, query and columns. */
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { connection } from '../../../app/connection.ts'
import type { TableDescription } from '../../../app/queries.ts'
import type { TableAddress } from '../location.ts'
import { RowCache } from '../rows/row-cache.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { createRowSource } from '../rows/row-source.ts'

export function useRows(
  address: TableAddress,
  query: RowQuery,
  groups: readonly (readonly string[] | null)[],
  { fields }: TableDescription,
): { readonly cache: RowCache; readonly revision: number } {
  const key = JSON.stringify([address, query, groups])
  const cache = useMemo(() => {
    const [ownAddress, ownQuery, ownGroups] = JSON.parse(key) as [TableAddress, RowQuery, typeof groups]
    return new RowCache(createRowSource({ address: ownAddress, query: ownQuery, groups: ownGroups, fields }))
  }, [key, fields])
  useEffect(() => {
    const stop = connection.onRecovered(() => cache.invalidate())
    return () => {
      stop()
      cache.close()
    }
  }, [cache])
  const revision = useSyncExternalStore(cache.subscribe, cache.snapshot)
  return { cache, revision }
}

/** Names of fields that rows have and the table does not declare; names are added as rows arrive. */
export function useFoundFields(
  cache: RowCache,
  revision: number,
  declared: readonly string[],
  isSchemaless: boolean,
): readonly string[] {
  const [found, setFound] = useState<readonly string[]>([])
  useEffect(() => {
    if (!isSchemaless) return
    const known = new Set([...declared, ...found])
    const fresh = new Set<string>()
    for (let at = 0; at < foundRowsMax; at++)
      for (const name of Object.keys(cache.rowAt(at)?.values ?? {})) if (!known.has(name)) fresh.add(name)
    if (fresh.size > 0) setFound([...found, ...fresh])
  }, [cache, revision, isSchemaless])
  return found
}

/** Rows that are searched for further fields. */
const foundRowsMax = 200
