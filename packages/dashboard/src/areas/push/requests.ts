/** Push messages as the API takes and lists them, and the requests about them. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'

export type Recipients =
  | { readonly kind: 'user'; readonly userId: string }
  | { readonly kind: 'topic'; readonly topic: string }
  | { readonly kind: 'all' }

export interface Message {
  readonly title: string
  readonly body: string
  readonly data?: Readonly<Record<string, unknown>>
}

export interface Audience {
  readonly devices: number
  /** Whether there are more than were counted. */
  readonly isMore: boolean
  readonly platforms: Readonly<Record<string, number>>
  readonly providers: { readonly fcm: boolean; readonly web: boolean }
}

export interface PushLog {
  readonly id: string
  readonly userId: string
  readonly status: 'sent' | 'failed' | 'removed'
  readonly platform: string
  readonly title: string
  readonly body: string
  readonly timestamp: string
  readonly error: string | null
}

const queryOf = (to: Recipients): object =>
  to.kind === 'user' ? { userId: to.userId } : to.kind === 'topic' ? { topic: to.topic } : {}

/** The devices that a message would reach; null while recipients are missing. */
export const useAudience = (to: Recipients | null) =>
  useQuery({
    queryKey: ['push', 'audience', to],
    enabled: to !== null,
    queryFn: ({ signal }) => api.get<Audience>('/api/push-audience', { query: to === null ? {} : queryOf(to), signal }),
  })

const logsShown = 100

/** The messages of the last 24 hours, newest first. */
export const usePushLogs = (userId: string) =>
  useQuery({
    queryKey: ['push', 'logs', userId],
    queryFn: async ({ signal }) => {
      const query = { limit: logsShown, ...(userId === '' ? {} : { userId }) }
      return (await api.get<{ readonly logs: readonly PushLog[] }>('/api/push/logs', { query, signal })).logs
    },
  })

/** Messages to one user are counted at once; those to many are sent in the background. */
export interface Sent {
  readonly sent?: number
  readonly failed?: number
}

export function useSend() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ to, message }: { readonly to: Recipients; readonly message: Message }): Promise<Sent> => {
      if (to.kind === 'user') return api.post('/api/push/send', { body: { userId: to.userId, ...message } })
      if (to.kind === 'topic')
        return api.post('/api/push/send-to-topic', { body: { topic: to.topic, payload: message } })
      return api.post('/api/push/broadcast', { body: { payload: message } })
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ['push', 'logs'] }),
  })
}
