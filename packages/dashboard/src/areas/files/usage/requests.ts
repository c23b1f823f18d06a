/** What buckets and users store, and the quotas on it. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { session } from '../../../app/session-store.ts'
import { useStore } from '../../../app/store.ts'
import { api } from '../../../app/transport.ts'

export interface Usage {
  readonly files: number
  readonly bytes: number
}

export interface BucketUsage extends Usage {
  readonly bucket: string
  readonly releasedBytes: number
  readonly variantBytes: number
  readonly quotaBytes: number | null
  readonly userQuotaBytes: number | null
}

export interface UserOfBucket extends Usage {
  readonly userId: string
  readonly email: string | null
  readonly displayName: string | null
}

const path = '/api/storage-usage'
const pageSize = 50

/** Whether usage can be shown: not while viewing as a user, who sees files but no totals. */
export const useHasUsage = (): boolean => useStore(session.current)?.viewing === null

export const useBucketUsage = () =>
  useQuery({
    queryKey: ['files', 'usage'],
    enabled: useHasUsage(),
    queryFn: ({ signal }) => api.get<{ readonly buckets: readonly BucketUsage[] }>(path, { signal }),
  })

/** The users with the most bytes. */
export const useBucketUsers = (bucket: string) =>
  useInfiniteQuery({
    queryKey: ['files', 'usage', bucket],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api.get<{ readonly users: readonly UserOfBucket[]; readonly cursor: string | null }>(
        `${path}/buckets/${encodeURIComponent(bucket)}`,
        { query: { limit: pageSize, ...(pageParam === '' ? {} : { cursor: pageParam }) }, signal },
      ),
    getNextPageParam: ({ cursor }) => cursor,
  })
