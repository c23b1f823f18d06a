/** Reads the rows of a table for a `RowCache` from the server. */
import { session } from '../../../app/session-store.ts'
import { api } from '../../../app/transport.ts'
import type { TableAddress } from '../location.ts'
import { apiPath } from '../location.ts'
import { rowOf } from './row.ts'
import { type Anchor, type RowSource, rowsPerPage } from './row-cache.ts'
import { parametersOf, type RowQuery } from './row-query.ts'

/** Characters of a value; the panel reads the rest. 40 rows of 12 such columns have less than 100 kB. */
const previewChars = 160

interface ListResponse {
  readonly items: readonly Readonly<Record<string, unknown>>[]
  readonly versions?: readonly (number | null)[]
  readonly hasMore: boolean | null
  readonly total: number | null
}

const positionOf = (anchor: Anchor): Readonly<Record<string, string | number>> =>
  anchor.kind === 'offset' ? { offset: anchor.offset } : { [anchor.kind]: anchor.id }

/** `groups`: the fields of each group of columns; null for all fields of a table without declared ones. */
export function createRowSource(
  address: TableAddress,
  query: RowQuery,
  groups: readonly (readonly string[] | null)[],
): RowSource {
  const path = apiPath(address)
  const isSearch = query.words !== null
  const parameters = parametersOf(query)
  // Users get values in full length.
  const isEntire = Boolean(session.current.get()?.viewing)
  return {
    isKeyset: !isSearch,
    async load(anchor, group, signal) {
      const fields = groups[group]
      const { items, versions, hasMore } = await api.get<ListResponse>(isSearch ? `${path}/search` : path, {
        query: {
          ...parameters,
          ...positionOf(anchor),
          limit: rowsPerPage,
          versions: 1,
          ...(isEntire ? {} : { preview: previewChars }),
          ...(fields ? { fields: ['id', ...fields.filter((name) => name !== 'id')].join(',') } : {}),
        },
        signal,
      })
      return { rows: items.map((item, at) => rowOf(item, versions?.[at])), hasMore }
    },
    async count(signal) {
      if (isSearch) {
        const { total } = await api.get<ListResponse>(`${path}/search`, {
          query: { ...parameters, limit: 1, fields: 'id' },
          signal,
        })
        return total ?? Number.POSITIVE_INFINITY
      }
      const { sort: _, ...conditions } = parameters
      return (await api.get<{ total: number }>(`${path}/count`, { query: conditions, signal })).total
    },
  }
}
