/**
 * A subscription of the page: the platform's own socket with the cookie of the session. After a lost connection it
 * continues behind the last change; where the server has forgotten it, `onGap` is called.
 */
import { connection } from '../../../app/connection.ts'
import { api, basePath } from '../../../app/transport.ts'

export type LiveState = 'connecting' | 'live' | 'refused'

export interface LiveChange {
  readonly changeType: 'added' | 'modified' | 'removed'
  readonly docId: string
}

interface Message extends Partial<LiveChange> {
  readonly type: string
  readonly cursor?: string
  readonly recovered?: boolean
  readonly message?: string
  readonly channel?: string
  readonly changes?: readonly LiveChange[]
}

export interface LiveSocketOptions {
  readonly channel: string
  /** As in a list. */
  readonly filters: readonly unknown[]
  readonly onChanges: (changes: readonly LiveChange[]) => void
  /** Changes are missing: everything must be read again. */
  readonly onGap: () => void
  /** `reason` where the server refuses the subscription. */
  readonly onState: (state: LiveState, reason?: string) => void
}

/** Between attempts. A server that restarts is noticed by `connection` as well. */
const retryMs = [500, 1_000, 2_000, 5_000] as const
/** The server closes silent sockets after 45 seconds. */
const pingMs = 20_000

/** Opens the subscription; returns the function that ends it. */
export function openLiveSocket({ channel, filters, onChanges, onGap, onState }: LiveSocketOptions): () => void {
  let socket: WebSocket | null = null
  let since: string | undefined
  let attempts = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const stopped = new AbortController()

  const send = (message: object): void => socket?.send(JSON.stringify(message))

  function receive(message: Message): void {
    const { type, cursor } = message
    since = cursor ?? since
    if (type === 'subscribed') {
      attempts = 0
      onState('live')
      if (message.recovered === false) onGap()
    } else if (type === 'resync') onGap()
    else if (type === 'db_change') onChanges([message as LiveChange])
    else if (type === 'batch_changes') onChanges(message.changes ?? [])
    else if (type === 'error' && message.channel === channel) {
      onState('refused', message.message)
      end()
    }
  }

  function connect(): void {
    clearTimeout(timer)
    if (stopped.signal.aborted || socket !== null) return
    const opened = new WebSocket(`${location.origin.replace(/^http/, 'ws')}${basePath}/api/db/subscribe`)
    socket = opened
    opened.onopen = () => {
      // Of changed records that are shown, the columns in view are read, cut like those of a list.
      const only = filters.length > 0 ? { filters } : {}
      send({ type: 'subscribe', channel, fields: 'id', ...only, ...(since ? { since } : {}) })
      ping()
    }
    opened.onmessage = ({ data }) => {
      if (socket !== opened) return
      for (const message of [JSON.parse(String(data)) as Message | Message[]].flat()) receive(message)
    }
    opened.onclose = () => {
      if (socket === opened) void lose()
    }
  }

  function ping(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      send({ type: 'ping' })
      ping()
    }, pingMs)
  }

  async function lose(): Promise<void> {
    clearTimeout(timer)
    socket = null
    onState('connecting')
    try {
      // Asks for a sign-in where the session has ended.
      await api.get('/api/schema', { signal: stopped.signal })
    } catch {
      // The server is away.
    }
    timer = setTimeout(connect, retryMs[Math.min(attempts++, retryMs.length - 1)])
  }

  const stopWaiting = connection.onRecovered(connect)
  function end(): void {
    stopped.abort()
    stopWaiting()
    clearTimeout(timer)
    const open = socket
    socket = null
    open?.close()
  }
  onState('connecting')
  connect()
  return end
}
