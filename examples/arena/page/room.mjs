/**
 * One room as seen from a browser: joins, keeps a copy of its state, acts, and comes back by itself where it left off.
 * Knows nothing of what the state means.
 */

/** Pages cannot see the protocol's own pings. A server that says nothing from one of these to the next is gone. */
const pingMs = 20_000
const retryFirstMs = 200
const retryMostMs = 3000
/** Kept until they are answered, and sent again over a new connection; more than these are not taken. */
const actionsMost = 32
/** Why a room does not want the page back. A token that is not good any longer (4002) is another matter. */
const finalCodes = new Map([
  [4000, 'misunderstood'],
  [4003, 'full'],
  [4004, 'kicked'],
  [4005, 'left'],
])
const tokenRefused = 4002
/** The server has not begun with the action: it may be sent again. */
const unbegun = new Set(['NOT_JOINED', 'RATE_LIMITED'])

/** Sets what lies at each path; null deletes. */
function apply(state, delta) {
  for (const [path, value] of Object.entries(delta)) {
    const keys = path.split('.')
    const last = keys.pop()
    const at = keys.reduce((within, key) => within[key], state)
    if (value === null) delete at[last]
    else at[last] = value
  }
}

/**
 * @typedef {object} Told
 * @property {(shared: object, own: object) => void} onChange What everybody sees, and what only this player does.
 * @property {(messageType: string, data: unknown) => void} onMessage
 * @property {(status: 'connecting' | 'open' | string, userId: string | null) => void} onStatus `misunderstood`, `full`,
 *   `kicked` and `left` are the end.
 * @property {(isResumed: boolean) => void} onJoined With the whole state, or resumed: what was missed comes as deltas.
 */

/**
 * Joins a room as `person`. `act` sends an action and resolves with its result, whatever happens to the connection
 * meanwhile: it is sent again with the same `requestId`, and the server runs it once. Rejects with what the room says.
 * @param {{ url: string, namespace: string, id: string, person: object } & Told} options
 */
export function joinRoom({ url, namespace, id, person, onChange, onMessage, onStatus, onJoined }) {
  const address = `${url.replace(/^http/, 'ws')}/api/room?${new URLSearchParams({ namespace, id })}`
  /** By `requestId`. */
  const waiting = new Map()
  let shared = {}
  let own = {}
  /** Up to where both are known, as the server counts; null before the first `sync`. */
  let known = null
  let socket = null
  let isJoined = false
  let retryMs = retryFirstMs

  const say = (message) => socket.send(JSON.stringify(message))

  function retry() {
    onStatus('connecting', null)
    // At random, so that those who were cut off together do not come back together.
    setTimeout(connect, Math.random() * retryMs)
    retryMs = Math.min(2 * retryMs, retryMostMs)
  }

  async function connect() {
    onStatus('connecting', null)
    try {
      listen(await person.get())
    } catch {
      retry()
    }
  }

  function listen({ token, renewInMs }) {
    const connection = new WebSocket(address)
    socket = connection
    let isHeard = true
    const renew = async () => {
      const next = await person.get().catch(() => ({ token: null, renewInMs: retryMostMs }))
      if (connection.readyState !== WebSocket.OPEN) return
      if (next.token !== null) say({ type: 'auth', token: next.token })
      renewal = setTimeout(renew, next.renewInMs)
    }
    let renewal = setTimeout(renew, renewInMs)
    const pings = setInterval(() => {
      if (!isHeard) connection.close()
      else if (connection.readyState === WebSocket.OPEN) say({ type: 'ping' })
      isHeard = false
    }, pingMs)

    connection.onopen = () => say({ type: 'auth', token, caps: ['resume'] })
    connection.onmessage = ({ data }) => {
      isHeard = true
      hear(JSON.parse(data))
    }
    connection.onclose = ({ code }) => {
      clearInterval(pings)
      clearTimeout(renewal)
      isJoined = false
      if (code === tokenRefused) person.forget()
      if (!finalCodes.has(code)) return retry()
      onStatus(finalCodes.get(code), null)
      for (const { reject } of waiting.values()) reject(new Error(finalCodes.get(code)))
      waiting.clear()
    }
  }

  function enter(isResumed) {
    isJoined = true
    retryMs = retryFirstMs
    for (const { message } of waiting.values()) say(message)
    onJoined(isResumed)
  }

  function answer({ requestId, code, message, result }, isError) {
    const action = waiting.get(requestId)
    if (!action) return
    if (isError && unbegun.has(code)) {
      setTimeout(() => isJoined && waiting.has(requestId) && say(action.message), retryFirstMs)
      return
    }
    waiting.delete(requestId)
    if (isError) action.reject(new Error(message))
    else action.resolve(result)
  }

  function hear(message) {
    switch (message.type) {
      case 'auth_success':
        onStatus('open', message.userId)
        return say({ type: 'join', ...known })
      case 'sync':
        shared = message.sharedState
        own = message.playerState
        known = {
          epoch: message.epoch,
          lastSharedVersion: message.sharedVersion,
          lastPlayerVersion: message.playerVersion,
        }
        enter(false)
        return onChange(shared, own)
      case 'resumed':
        return enter(true)
      case 'shared_delta':
        apply(shared, message.delta)
        known.lastSharedVersion = message.version
        return onChange(shared, own)
      case 'player_delta':
        apply(own, message.delta)
        known.lastPlayerVersion = message.version
        return onChange(shared, own)
      case 'action_result':
        return answer(message, false)
      case 'action_error':
        return answer(message, true)
      case 'message':
        return onMessage(message.messageType, message.data)
      case 'error':
        console.warn(message.code, message.message)
    }
  }

  connect()
  return {
    act(actionType, payload = {}) {
      if (waiting.size >= actionsMost) return Promise.reject(new Error('Too much is waiting for the room'))
      const message = { type: 'send', actionType, payload, requestId: crypto.randomUUID() }
      return new Promise((resolve, reject) => {
        waiting.set(message.requestId, { message, resolve, reject })
        if (isJoined) say(message)
      })
    },
    /** Gives the seat up at once; a page that only closes keeps it for a while. */
    leave: () => isJoined && say({ type: 'leave' }),
  }
}
