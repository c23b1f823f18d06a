/** The recent log lines of all nodes of the server. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import { given } from '../../text/given.ts'

export const levels = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof levels)[number]

export interface LogNode {
  /** Of one run of its process. */
  readonly id: string
  readonly host: string
}

export interface LogLine {
  readonly at: string
  readonly level: Level
  readonly event: string
  readonly requestId: string | null
  readonly fields: Readonly<Record<string, unknown>>
  readonly node: LogNode
}

interface LogPage {
  readonly items: readonly LogLine[]
  readonly cursor: string | null
  /** Those that have answered. */
  readonly nodes: readonly LogNode[]
}

export interface LogFilter {
  readonly level: Level
  readonly text: string
  readonly event: string
  readonly requestId: string
  /** The id of a node. */
  readonly node: string
}

const pageSize = 100
/** How often new lines are read while the view follows them. */
const followIntervalMs = 2000

/** Newest first. With `isFollowing`, read again every two seconds. */
export const useLogLines = ({ level, text, event, requestId, node }: LogFilter, isFollowing: boolean) =>
  useInfiniteQuery({
    queryKey: ['logs', level, text, event, requestId, node],
    initialPageParam: '',
    refetchInterval: isFollowing ? followIntervalMs : false,
    queryFn: ({ pageParam, signal }) =>
      api.get<LogPage>('/api/logs', {
        query: { limit: pageSize, ...given({ level, q: text, event, requestId, node, cursor: pageParam }) },
        signal,
      }),
    getNextPageParam: ({ cursor }) => cursor,
  })
