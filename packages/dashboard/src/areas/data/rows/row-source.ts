/** Reads the rows of a table for a `RowCache` from the server. */
import type { TableDescription } from '../../../app/queries.ts'
import { session } from '../../../app/session-store.ts'
import { api } from '../../../app/transport.ts'
import type { TableAddress } from '../location.ts'
import { apiPath } from '../location.ts'
import { estimateKey, estimateTime } from './estimate.ts'
import { rowsPerPage } from './pages.ts'
import { rowOf } from './row.ts'
import type { Anchor, LoadedPage, RowSource } from './row-cache.ts'
import { parametersOf, parseSortOrder, type RowQuery, type SortOrder } from './row-query.ts'

/** Characters of a value; the panel reads the rest. 40 rows of 12 such columns have less than 100 kB. */
const previewChars = 160

interface ListResponse {
  readonly items: readonly Readonly<Record<string, unknown>>[]
  readonly versions?: readonly (number | null)[]
  readonly hasMore: boolean | null
  readonly total: number | null
}

type Parameters = Readonly<Record<string, string | number>>

const extraMembers = ['highlights', 'distances']

/** The order of a list without `sort`. */
const creationOrder: SortOrder = { field: 'id', direction: 'asc' }

/** The opposite of an order, with several fields too. */
const reversed = (sort: string): string =>
  sort
    .split(',')
    .map((key) => (key.endsWith(':desc') ? key.replace(/:desc$/, ':asc') : `${key.replace(/:asc$/, '')}:desc`))
    .join(',')

export interface RowSourceOptions {
  readonly address: TableAddress
  readonly query: RowQuery
  /** The fields of each group of columns; null for all fields of a table without declared ones. */
  readonly groups: readonly (readonly string[] | null)[]
  readonly fields: TableDescription['fields']
}

export function createRowSource({ address, query, groups, fields }: RowSourceOptions): RowSource {
  const path = apiPath(address)
  const isSearch = query.words !== null
  const parameters = parametersOf(query)
  // Users get values in full length.
  const cut = session.current.get()?.viewing ? {} : { preview: previewChars }
  const order = parseSortOrder(query.sort) ?? creationOrder
  const orderType = order.field === 'id' ? 'string' : fields[order.field]?.type

  /** What searches and conditions of place add to an item; a field of that name is left as it is. */
  function withoutExtras(item: ListResponse['items'][number]): ListResponse['items'][number] {
    const kept = Object.entries(item).filter(([name]) => name in fields || !extraMembers.includes(name))
    return Object.fromEntries(kept)
  }

  async function list(parameters: Parameters, group: number, signal: AbortSignal): Promise<LoadedPage> {
    const names = groups[group]
    const isFound = isSearch && 'q' in parameters
    const { items, versions, hasMore } = await api.get<ListResponse>(isFound ? `${path}/search` : path, {
      query: {
        limit: rowsPerPage,
        ...parameters,
        versions: 1,
        ...cut,
        ...(names ? { fields: ['id', ...names.filter((name) => name !== 'id')].join(',') } : {}),
      },
      signal,
    })
    return { rows: items.map((item, at) => rowOf(withoutExtras(item), versions?.[at])), hasMore }
  }

  /** The first or last key of the view. */
  async function keyAt(end: 'after' | 'before', signal: AbortSignal): Promise<unknown> {
    const { items } = await api.get<ListResponse>(path, {
      query: { ...parameters, [end]: '', limit: 1, fields: order.field, ...cut },
      signal,
    })
    return items[0]?.[order.field]
  }

  /** From an estimated key on; nothing where none can be estimated. */
  async function near(share: number, group: number, signal: AbortSignal): Promise<LoadedPage> {
    const [first, last] = await Promise.all([keyAt('after', signal), keyAt('before', signal)])
    const key = (orderType === 'datetime' ? estimateTime : estimateKey)(first, last, share)
    if (key === null) return { rows: [], hasMore: null }
    const operator = order.direction === 'asc' ? '>=' : '<='
    const filter = JSON.stringify([...query.filter, [order.field, operator, key]])
    return list({ ...parameters, filter, after: '' }, group, signal)
  }

  return {
    isKeyset: !isSearch,
    canEstimate: !isSearch && !query.sort?.includes(',') && orderType !== undefined && orderType !== 'boolean',
    async load(anchor: Anchor, group, signal) {
      switch (anchor.kind) {
        case 'rows':
          return list({ filter: JSON.stringify([['id', 'in', anchor.ids]]), after: '' }, group, signal)
        case 'share':
          return near(anchor.share, group, signal)
        case 'end': {
          const { offset, limit } = anchor
          const sort = reversed(query.sort ?? 'id')
          const { rows } = await list({ ...parameters, sort, offset, limit }, group, signal)
          return { rows: rows.toReversed(), hasMore: null }
        }
        case 'offset':
          return list({ ...parameters, offset: anchor.offset }, group, signal)
        default:
          return list({ ...parameters, [anchor.kind]: anchor.id }, group, signal)
      }
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
