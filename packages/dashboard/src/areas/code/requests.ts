/** Functions, jobs, queues, schedules and log lines as the API for administrators shows them, and the requests. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import { given } from '../../text/given.ts'

export interface ServerFunction {
  readonly name: string
  readonly kind: string
  /** What runs it: a path, a table, a schedule or a queue. */
  readonly trigger: string
  readonly state: 'active' | 'failing'
  /** File and line. */
  readonly location: string | null
  readonly calls: number
  readonly failures: number
  readonly lastError: { readonly at: string; readonly message: string; readonly location: string | null } | null
}

export interface Hosts {
  readonly items: readonly {
    readonly pid: number
    readonly state: 'starting' | 'ready' | 'blocked'
    readonly startedAt: string
    readonly memoryBytes: number | null
    readonly invocations: number
  }[]
  readonly memoryBytesMax: number
  readonly waiting: number
  readonly restarts: number
  readonly lastEnd: { readonly at: string; readonly reason: string } | null
}

export const jobStatuses = ['waiting', 'running', 'done', 'failed', 'dead'] as const
export type JobStatus = (typeof jobStatuses)[number]

export interface ListedJob {
  readonly id: string
  readonly function: string
  readonly kind: string
  readonly status: JobStatus
  readonly attempt: number
  readonly key: string | null
  readonly runAt: string
  readonly createdAt: string
  readonly startedAt: string | null
  readonly finishedAt: string | null
  readonly error: string | null
}

export interface Job extends ListedJob {
  readonly input: unknown
}

export interface Queue {
  /** The queue, or the function where it has none. */
  readonly name: string
  readonly function: string
  readonly kind: string
  readonly pausedAt: string | null
  readonly counts: Readonly<Record<JobStatus, number>>
}

export interface Schedule {
  readonly name: string
  readonly cron: string
  readonly tz: string
  readonly nextAt: string | null
  readonly lastAt: string | null
  /** Newest first. */
  readonly runs: readonly ListedJob[]
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export interface FunctionLine {
  readonly at: string
  readonly level: LogLevel
  readonly function: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>> | null
  readonly requestId: string
  readonly location: string | null
}

interface JobPage {
  readonly items: readonly ListedJob[]
  readonly cursor: string | null
}

const base = '/api/functions'
const jobPath = (id: string): string => `${base}/jobs/${encodeURIComponent(id)}`
/** How often a visible view is read again. */
const refreshMs = 2000
const linesListed = 200

/** A list that is read again while its view is visible. */
const useItems = <Item>(name: string, path: string) =>
  useQuery({
    queryKey: ['functions', name],
    refetchInterval: refreshMs,
    queryFn: async ({ signal }) => (await api.get<{ readonly items: readonly Item[] }>(path, { signal })).items,
  })

export const useFunctions = () => useItems<ServerFunction>('list', base)
export const useQueues = () => useItems<Queue>('queues', `${base}/queues`)
export const useSchedules = () => useItems<Schedule>('schedules', `${base}/schedules`)

export const useHosts = () =>
  useQuery({
    queryKey: ['functions', 'hosts'],
    refetchInterval: refreshMs,
    queryFn: ({ signal }) => api.get<Hosts>(`${base}/hosts`, { signal }),
  })

export interface JobFilter {
  /** A queue or function; empty for all. */
  readonly queue: string
  readonly status: JobStatus | ''
}

/** Newest first. */
export const useJobs = ({ queue, status }: JobFilter) =>
  useInfiniteQuery({
    queryKey: ['functions', 'jobs', queue, status],
    initialPageParam: '',
    refetchInterval: refreshMs,
    queryFn: ({ pageParam, signal }) =>
      api.get<JobPage>(`${base}/jobs`, { query: given({ queue, status, cursor: pageParam }), signal }),
    getNextPageParam: ({ cursor }) => cursor,
  })

export const useJob = (id: string) =>
  useQuery<Job>({
    queryKey: ['functions', 'job', id],
    // Of a job that is gone or finished there is nothing new.
    refetchInterval: ({ state }) => (state.status === 'error' || state.data?.status === 'done' ? false : refreshMs),
    queryFn: ({ signal }) => api.get(jobPath(id), { signal }),
  })

export interface LineFilter {
  readonly function: string
  /** A request, or a job. */
  readonly requestId: string
  readonly level: LogLevel
}

/** The latest lines, oldest first. */
export const useLines = ({ function: name, requestId, level }: LineFilter) =>
  useQuery({
    queryKey: ['functions', 'lines', name, requestId, level],
    refetchInterval: refreshMs,
    queryFn: async ({ signal }) => {
      const query = { limit: linesListed, ...given({ function: name, requestId, level }) }
      return (await api.get<{ readonly items: readonly FunctionLine[] }>(`${base}/logs`, { query, signal })).items
    },
  })

/** A change, after which everything about functions is read again. */
export function useFunctionChange<Input, Output>(send: (input: Input) => Promise<Output>) {
  const queries = useQueryClient()
  const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: ['functions'] })
  // Some of several requests may have been accepted before one was refused.
  return useMutation({ mutationFn: send, onSuccess: readAgain, onError: readAgain })
}

export const retryJob = (id: string): Promise<unknown> => api.post(`${jobPath(id)}/retry`)
export const cancelJob = (id: string): Promise<unknown> => api.post(`${jobPath(id)}/cancel`)
export const setPaused = ({
  name,
  isPaused,
}: {
  readonly name: string
  readonly isPaused: boolean
}): Promise<unknown> => api.post(`${base}/queues/${encodeURIComponent(name)}/${isPaused ? 'pause' : 'resume'}`)

/** Dead letters of one request for them, and of one action on all. */
const deadListed = 200
export const deadRetriedMax = 1000

const statusOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined

/**
 * Retries the newest dead letters of a queue, or of all with an empty name, and returns how many. They are listed
 * before the first is retried, so that one that fails again is not retried twice.
 */
export async function retryDead(queue: string): Promise<number> {
  const ids: string[] = []
  let cursor: string | null = ''
  while (cursor !== null && ids.length < deadRetriedMax) {
    const query = { limit: deadListed, ...given({ queue, status: 'dead', cursor }) }
    const page: JobPage = await api.get<JobPage>(`${base}/jobs`, { query })
    ids.push(...page.items.map(({ id }) => id))
    cursor = page.cursor
  }
  let retried = 0
  for (const id of ids)
    try {
      await retryJob(id)
      retried++
    } catch (error) {
      // It was retried elsewhere meanwhile, or it is gone.
      if (statusOf(error) !== 409 && statusOf(error) !== 404) throw error
    }
  return retried
}
