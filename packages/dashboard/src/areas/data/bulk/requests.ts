/** Requests of bulk jobs: the preview, the start, the progress, the cancellation. */
import { useQuery } from '@tanstack/react-query'
import { queryClient } from '../../../app/queries.ts'
import { api } from '../../../app/transport.ts'
import { apiPath, type TableAddress } from '../location.ts'
import type { Values } from '../record/writes.ts'
import { type Row, rowOf } from '../rows/row.ts'
import { type Condition, parametersOf, type RowQuery } from '../rows/row-query.ts'

export interface BulkChange {
  readonly action: 'update' | 'delete'
  readonly filter: readonly Condition[]
  /** Words of a search. */
  readonly q?: string
  readonly data?: Values
  /** The number of records that was confirmed. */
  readonly limit: number
}

export interface BulkJob {
  readonly id: string
  readonly action: 'update' | 'delete'
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'canceled'
  readonly total: number
  readonly changed: number
  readonly failed: number
  readonly failures: readonly { readonly id: string; readonly message: string }[]
  readonly error: string | null
  readonly startedBy: string | null
}

const bulkPath = (address: TableAddress): string => apiPath(address).replace('/api/db/', '/api/bulk/')

export const isUnderWay = (job: BulkJob | null): boolean => job?.state === 'waiting' || job?.state === 'running'

/** How often the progress of a job under way is read. */
const progressMs = 1_000

const keyOf = (address: TableAddress) => ['bulk', bulkPath(address)] as const

/** The latest job of a table; null where there is none. */
export const useLatestJob = (address: TableAddress) =>
  useQuery({
    queryKey: keyOf(address),
    queryFn: async ({ signal }) =>
      (await api.get<{ readonly jobs: readonly BulkJob[] }>(bulkPath(address), { signal })).jobs[0] ?? null,
    refetchInterval: ({ state }) => (isUnderWay(state.data ?? null) ? progressMs : false),
  })

const shown = (address: TableAddress, job: BulkJob): BulkJob => {
  queryClient.setQueryData(keyOf(address), job)
  return job
}

export const startJob = async (address: TableAddress, change: BulkChange): Promise<BulkJob> =>
  shown(address, await api.post<BulkJob>(bulkPath(address), { body: change }))

export const cancelJob = async (address: TableAddress, id: string): Promise<BulkJob> =>
  shown(address, await api.delete<BulkJob>(`${bulkPath(address)}/${id}`))

export interface Preview {
  readonly total: number
  readonly rows: readonly Row[]
}

/** Records of a preview. */
const sampleRows = 5
const previewChars = 160

/** How many records a query selects, and the first of them. */
export const usePreview = (address: TableAddress, query: RowQuery, fields: readonly string[]) =>
  useQuery({
    queryKey: ['bulk-preview', apiPath(address), query, fields],
    staleTime: 0,
    gcTime: 0,
    queryFn: async ({ signal }): Promise<Preview> => {
      const { items, total } = await api.get<{ readonly items: readonly Values[]; readonly total: number }>(
        query.words === null ? apiPath(address) : `${apiPath(address)}/search`,
        {
          query: {
            ...parametersOf(query),
            fields: ['id', ...fields].join(','),
            ...(query.words === null && { sort: 'id:asc' }),
            limit: sampleRows,
            preview: previewChars,
          },
          signal,
        },
      )
      return { total, rows: items.map((item) => rowOf(item, null)) }
    },
  })
