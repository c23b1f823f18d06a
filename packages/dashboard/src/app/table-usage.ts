/** What tables and their indexes take on disk, for Insights and the schema of a table. */
import { useQuery } from '@tanstack/react-query'
import { formatBytes, formatCount } from '../design/format/number.ts'
import { session } from './session-store.ts'
import { useStore } from './store.ts'
import { api } from './transport.ts'

export interface Measure {
  readonly value: number
  readonly precision: 'exact' | 'estimate' | 'at-least'
}

export interface StoredIndex {
  readonly kind: 'key' | 'unique' | 'index' | 'search'
  readonly fields: readonly string[]
  readonly bytes: Measure
}

export interface StoredTable {
  readonly rows: Measure
  readonly bytes: Measure
  readonly indexes: readonly StoredIndex[]
}

export interface TableUsage {
  readonly namespace: string
  readonly table: string
  readonly isPerInstance: boolean
  readonly stored: StoredTable | null
}

export interface TableUsageReply {
  readonly measuredAt: string | null
  readonly isMeasuring: boolean
  readonly tables: readonly TableUsage[]
}

/** How often the result of a measurement under way is read. */
const measuringIntervalMs = 1000

/** Read again while the server measures. While viewing as a user there is none. */
export function useTableUsage() {
  const viewing = useStore(session.current)?.viewing
  return useQuery<TableUsageReply>({
    queryKey: ['table-usage'],
    enabled: viewing === null,
    refetchInterval: (query) => (query.state.data?.isMeasuring ? measuringIntervalMs : false),
    queryFn: ({ signal }) => api.get<TableUsageReply>('/api/table-usage', { signal }),
  })
}

const marks = { exact: '', estimate: '≈ ', 'at-least': '≥ ' } as const

export const formatRows = ({ value, precision }: Measure): string => marks[precision] + formatCount(value)
export const formatSize = ({ value, precision }: Measure): string => marks[precision] + formatBytes(value)

/** The least precise of several measures, with their sum. */
export const sumOf = (measures: readonly Measure[]): Measure => ({
  value: measures.reduce((sum, { value }) => sum + value, 0),
  precision: measures.find(({ precision }) => precision !== 'exact')?.precision ?? 'exact',
})
