/** Searches of the instances of a namespace. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { api } from '../../../app/transport.ts'

export interface Instance {
  readonly id: string
  /** When it was last written to; null where the server does not know. */
  readonly writtenAt: string | null
}

interface InstancePage {
  readonly instances: readonly Instance[]
  readonly hasMore: boolean
  /** Those in use by the server, the latest first. */
  readonly recent: readonly Instance[]
}

export interface InstanceQuery {
  readonly namespace: string
  readonly text: string
  readonly match: 'prefix' | 'contains'
}

const perPage = 30

export const useInstances = ({ namespace, text, match }: InstanceQuery, isEnabled: boolean) =>
  useInfiniteQuery({
    queryKey: ['instances', namespace, text, match],
    enabled: isEnabled,
    placeholderData: keepPreviousData,
    initialPageParam: '',
    queryFn: ({ pageParam: after, signal }) =>
      api.get<InstancePage>(`/api/instances/${encodeURIComponent(namespace)}`, {
        query: { text, match, after, limit: perPage },
        signal,
      }),
    getNextPageParam: ({ instances, hasMore }) => (hasMore ? instances.at(-1)?.id : undefined),
  })
