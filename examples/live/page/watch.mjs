/**
 * Watches one table and keeps up with it: subscribes, reads what is there, and is told of every change from then on,
 * also of those that happened while the connection was broken. Knows nothing of what is made of it.
 */

/** Pages cannot see the protocol's own pings. A server that says nothing from one of these to the next is gone. */
const pingMs = 30_000
const retryFirstMs = 200
const retryMostMs = 5000
/** Closed for what was said, or who said it: trying again would end the same way. */
const finalCodes = new Set([4000, 4002])

/**
 * @typedef {Record<string, unknown> & { id: string }} Row
 * @typedef {'connecting' | 'open' | 'refused'} State
 * @typedef {object} Told
 * @property {(rows: Row[]) => void} onRows The whole view; what was shown before is void.
 * @property {(type: 'added' | 'modified' | 'removed', id: string, row: Row | null) => void} onChange
 * @property {(state: State) => void} onState
 * @property {() => void} onRecovered A broken connection is back, and nothing was missed.
 */

/**
 * Starts watching `table` at `url` as whoever `token` proves, or as nobody for null. `setFilters` takes tuples as lists
 * do, or null for none.
 * @param {{ url: string, token: string | null, table: string } & Told} options
 */
export function watch({ url, token, table, onRows, onChange, onState, onRecovered }) {
  const channel = `dblive:shared:${table}`
  let socket = null
  let filters = null
  /** Changes of the filters that the server has not confirmed. */
  let unconfirmed = 0
  /** Up to where everything has been told. */
  let cursor = null
  /** What is shown is the view of these filters, up to the cursor: a new connection can go on from there. */
  let isShown = false
  /** Changes told while the view is being read. They may be in it already or not: they are applied to it. */
  let early = null
  let readings = 0
  let retryMs = retryFirstMs

  /** Reads the whole view; what is told meanwhile comes after it. Rejects where it cannot be read. */
  async function readAnew() {
    const reading = ++readings
    isShown = false
    early = []
    const parameters = new URLSearchParams({ limit: '1000' })
    if (filters) parameters.set('filter', JSON.stringify(filters))
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` }
    const response = await fetch(`${url}/api/db/shared/tables/${table}?${parameters}`, { headers })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    const { items } = await response.json()
    // Another reading has begun since: the filters are others, or the connection is.
    if (reading !== readings) return
    const late = early
    early = null
    isShown = unconfirmed === 0
    onRows(items)
    late.forEach(tell)
  }

  function tell(change) {
    if (early) early.push(change)
    else onChange(change.changeType, change.docId, change.data)
  }

  function connect() {
    onState('connecting')
    unconfirmed = 0
    const own = new WebSocket(`${url.replace(/^http/, 'ws')}/api/db/subscribe?${new URLSearchParams({ channel })}`)
    socket = own
    const say = (message) => own.send(JSON.stringify(message))
    // Once it is known who is there, the server subscribes to the channel of the address by itself. What is asked for
    // here comes behind that and replaces it; only its answer counts.
    let answersLeft = token === null ? 1 : 2
    let isHeard = true
    const pings = setInterval(() => {
      if (!isHeard) own.close()
      else if (own.readyState === WebSocket.OPEN) say({ type: 'ping' })
      isHeard = false
    }, pingMs)

    own.onopen = () => {
      if (token !== null) say({ type: 'auth', token })
      say({ type: 'subscribe', channel, filters, ...(isShown ? { since: cursor } : {}) })
    }
    own.onmessage = ({ data }) => {
      isHeard = true
      const message = JSON.parse(data)
      if (message.type === 'subscribed' && --answersLeft > 0) return
      // A view that could not be read: a new connection tries again.
      hear(message).catch(() => own.close())
    }
    own.onclose = ({ code }) => {
      clearInterval(pings)
      if (finalCodes.has(code)) return onState('refused')
      onState('connecting')
      // At random, so that those who were cut off together do not come back together.
      setTimeout(connect, Math.random() * retryMs)
      retryMs = Math.min(2 * retryMs, retryMostMs)
    }
  }

  async function hear(message) {
    if (message.cursor !== undefined) cursor = message.cursor
    switch (message.type) {
      case 'subscribed':
        retryMs = retryFirstMs
        onState('open')
        return message.recovered ? onRecovered() : readAnew()
      case 'filters_updated':
        unconfirmed -= 1
        return unconfirmed > 0 ? undefined : readAnew()
      case 'db_change':
        return tell(message)
      case 'batch_changes':
        return message.changes.forEach(tell)
      case 'error':
        console.warn(message.code, message.message)
    }
  }

  connect()
  return {
    setFilters(next) {
      filters = next
      isShown = false
      if (socket.readyState !== WebSocket.OPEN) return
      unconfirmed += 1
      socket.send(JSON.stringify({ type: 'update_filters', channel, filters }))
    },
  }
}
