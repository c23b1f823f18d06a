/** The backups of the server: lists, starts and verifies them. */
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'

export interface Backup {
  readonly name: string
  readonly bytes: number
  /** Null for a file that is no backup. */
  readonly createdAt: string | null
  readonly version: string | null
  readonly hasSecrets: boolean
  /** The latest verification; null if it was not verified. */
  readonly verification: {
    readonly at: string
    readonly isIntact: boolean
    readonly problems: readonly string[]
  } | null
}

export interface BackupRun {
  readonly kind: 'backup' | 'verification'
  readonly state: 'running' | 'done' | 'failed'
  readonly startedAt: string
  readonly endedAt: string | null
  readonly message: string | null
}

interface BackupPage {
  /** `none` without a folder for backups; `external` where PostgreSQL has the data. */
  readonly state: 'ready' | 'none' | 'external'
  readonly items: readonly Backup[]
  readonly cursor: string | null
  readonly latestRun: BackupRun | null
  readonly bytesWritten: number | null
}

const runningIntervalMs = 1000

/** Newest first; read again every second while one is running. */
export const useBackups = () =>
  useInfiniteQuery({
    queryKey: ['backups'],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }): Promise<BackupPage> =>
      api.get('/api/backups', { query: pageParam === '' ? {} : { cursor: pageParam }, signal }),
    getNextPageParam: ({ cursor }) => cursor,
    refetchInterval: ({ state }) => (isRunning(state.data?.pages[0]) ? runningIntervalMs : false),
  })

const isRunning = (page: BackupPage | undefined): boolean => page?.latestRun?.state === 'running'

/** Starts a backup, or the verification of the archive whose name is passed. */
export function useBackupStart() {
  const queries = useQueryClient()
  const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: ['backups'] })
  return useMutation({
    mutationFn: (verified: string | null) =>
      api.post<BackupRun>(verified === null ? '/api/backups' : `/api/backups/${encodeURIComponent(verified)}/verify`),
    onSuccess: readAgain,
    // Another administrator may have started one.
    onError: readAgain,
  })
}
