/**
 * A live view of one table: subscribes, lists the records, applies every change, and after a disconnect resumes with
 * the last cursor. Independent of how the view is displayed.
 */

/** Pages cannot see WebSocket pings. A server that sends nothing between two of these is considered dead. */
const pingMs = 30_000
const retryFirstMs = 200
const retryMostMs = 5000
/** Close codes after which a reconnect would fail again. */
const finalCodes = new Set([4000, 4002])

/**
 * @typedef {Record<string, unknown> & { id: string }} Row
 * @typedef {'connecting' | 'open' | 'refused'} State
 * @typedef {object} Events
 * @property {(rows: Row[]) => void} onRows The complete view, which replaces the previous one.
 * @property {(type: 'added' | 'modified' | 'removed', id: string, row: Row | null) => void} onChange
 * @property {(state: State) => void} onState
 * @property {() => void} onRecovered The connection is restored and no change was missed.
 */

/**
 * Subscribes to `table` at `url` with `token`, or anonymously for null. `setFilters` takes filter tuples as lists do,
 * or null for none.
 * @param {{ url: string, token: string | null, table: string } & Events} options
 */
export function watch({ url, token, table, onRows, onChange, onState, onRecovered }) {
  const channel = `dblive:shared:${table}`
  let socket = null
  let filters = null
  /** Filter updates that the server has not confirmed. */
  let unconfirmed = 0
  /** The position up to which all changes have been received. */
  let cursor = null
  /** Whether the view is complete up to the cursor, so that a new connection can resume there. */
  let isListed = false
  /** Changes received while the view is being listed; applied to the list, which may already include them. */
  let early = null
  let listings = 0
  let retryMs = retryFirstMs

  /** Lists the complete view, then applies buffered changes. Rejects if it cannot be listed. */
  async function list() {
    const listing = ++listings
    isListed = false
    early = []
    const parameters = new URLSearchParams({ limit: '1000' })
    if (filters) parameters.set('filter', JSON.stringify(filters))
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` }
    const response = await fetch(`${url}/api/db/shared/tables/${table}?${parameters}`, { headers })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    const { items } = await response.json()
    // A newer listing has begun, with other filters or on another connection.
    if (listing !== listings) return
    const late = early
    early = null
    isListed = unconfirmed === 0
    onRows(items)
    late.forEach(apply)
  }

  function apply(change) {
    if (early) early.push(change)
    else onChange(change.changeType, change.docId, change.data)
  }

  function connect() {
    onState('connecting')
    unconfirmed = 0
    const own = new WebSocket(`${url.replace(/^http/, 'ws')}/api/db/subscribe?${new URLSearchParams({ channel })}`)
    socket = own
    const send = (message) => own.send(JSON.stringify(message))
    // After authentication the server subscribes to the channel of the URL. The subscription requested here replaces
    // it, so only its confirmation counts.
    let confirmationsLeft = token === null ? 1 : 2
    let isAlive = true
    const pings = setInterval(() => {
      if (!isAlive) own.close()
      else if (own.readyState === WebSocket.OPEN) send({ type: 'ping' })
      isAlive = false
    }, pingMs)

    own.onopen = () => {
      if (token !== null) send({ type: 'auth', token })
      send({ type: 'subscribe', channel, filters, ...(isListed ? { since: cursor } : {}) })
    }
    own.onmessage = ({ data }) => {
      isAlive = true
      const message = JSON.parse(data)
      if (message.type === 'subscribed' && --confirmationsLeft > 0) return
      // The view could not be listed: retry with a new connection.
      handle(message).catch(() => own.close())
    }
    own.onclose = ({ code }) => {
      clearInterval(pings)
      if (finalCodes.has(code)) return onState('refused')
      onState('connecting')
      // Jitter, so that clients that were disconnected together do not reconnect together.
      setTimeout(connect, Math.random() * retryMs)
      retryMs = Math.min(2 * retryMs, retryMostMs)
    }
  }

  async function handle(message) {
    if (message.cursor !== undefined) cursor = message.cursor
    switch (message.type) {
      case 'subscribed':
        retryMs = retryFirstMs
        onState('open')
        return message.recovered ? onRecovered() : list()
      case 'filters_updated':
        unconfirmed -= 1
        return unconfirmed > 0 ? undefined : list()
      case 'db_change':
        return apply(message)
      case 'batch_changes':
        return message.changes.forEach(apply)
      case 'error':
        console.warn(message.code, message.message)
    }
  }

  connect()
  return {
    setFilters(next) {
      filters = next
      isListed = false
      if (socket.readyState !== WebSocket.OPEN) return
      unconfirmed += 1
      socket.send(JSON.stringify({ type: 'update_filters', channel, filters }))
    },
  }
}
