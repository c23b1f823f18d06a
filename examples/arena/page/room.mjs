/** A client of one room: joins, keeps a copy of the state, runs actions, and reconnects with resume. */

/**
 * Interval of pings, since pages cannot see those of WebSockets. Without any message in between the socket is closed.
 */
const pingMs = 20_000
const retryFirstMs = 200
const retryMaxMs = 3000
/** Pending actions, which are repeated after a reconnect; further ones are rejected. */
const pendingMax = 32
/** Close codes after which the client does not reconnect. After 4002 it reconnects with another token. */
const finalCodes = new Map([
  [4000, 'protocol-error'],
  [4003, 'full'],
  [4004, 'kicked'],
  [4005, 'left'],
])
const tokenRejected = 4002
/** Error codes of actions that have not run and can be repeated. */
const retryable = new Set(['NOT_JOINED', 'RATE_LIMITED'])

/** Applies a delta: sets the value at each path; null deletes. */
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
 * @typedef {object} RoomEvents
 * @property {(shared: object, own: object) => void} onChange The shared state and the state of the player have changed.
 * @property {(messageType: string, data: unknown) => void} onMessage
 * @property {(status: 'connecting' | 'open' | string, userId: string | null) => void} onStatus `protocol-error`,
 *   `full`, `kicked` and `left` are final.
 * @property {(isResumed: boolean) => void} onJoined Joined with the complete state, or resumed with the missed deltas.
 */

/**
 * Joins a room as `user`. `act` runs an action and resolves with its result, or rejects with the error of the room.
 * After a lost connection it is repeated with the same `requestId`, so that the server runs it once.
 * @param {{ url: string, namespace: string, id: string, user: object } & RoomEvents} options
 */
export function joinRoom({ url, namespace, id, user, onChange, onMessage, onStatus, onJoined }) {
  const address = `${url.replace(/^http/, 'ws')}/api/room?${new URLSearchParams({ namespace, id })}`
  /** Actions without a response, by `requestId`. */
  const pending = new Map()
  let shared = {}
  let own = {}
  /** The last versions received; null before the first `sync`. */
  let position = null
  let socket = null
  let isJoined = false
  let retryMs = retryFirstMs

  const send = (message) => socket.send(JSON.stringify(message))

  function retry() {
    onStatus('connecting', null)
    // Jitter prevents that all clients reconnect at the same time after a restart.
    setTimeout(connect, Math.random() * retryMs)
    retryMs = Math.min(2 * retryMs, retryMaxMs)
  }

  async function connect() {
    onStatus('connecting', null)
    try {
      openSocket(await user.get())
    } catch {
      retry()
    }
  }

  function openSocket({ token, renewInMs }) {
    const connection = new WebSocket(address)
    socket = connection
    let isAlive = true
    const renew = async () => {
      const next = await user.get().catch(() => ({ token: null, renewInMs: retryMaxMs }))
      if (connection.readyState !== WebSocket.OPEN) return
      if (next.token !== null) send({ type: 'auth', token: next.token })
      renewal = setTimeout(renew, next.renewInMs)
    }
    let renewal = setTimeout(renew, renewInMs)
    const pings = setInterval(() => {
      if (!isAlive) connection.close()
      else if (connection.readyState === WebSocket.OPEN) send({ type: 'ping' })
      isAlive = false
    }, pingMs)

    connection.onopen = () => send({ type: 'auth', token, caps: ['resume'] })
    connection.onmessage = ({ data }) => {
      isAlive = true
      receive(JSON.parse(data))
    }
    connection.onclose = ({ code }) => {
      clearInterval(pings)
      clearTimeout(renewal)
      isJoined = false
      if (code === tokenRejected) user.forget()
      if (!finalCodes.has(code)) return retry()
      onStatus(finalCodes.get(code), null)
      for (const { reject } of pending.values()) reject(new Error(finalCodes.get(code)))
      pending.clear()
    }
  }

  function enter(isResumed) {
    isJoined = true
    retryMs = retryFirstMs
    for (const { message } of pending.values()) send(message)
    onJoined(isResumed)
  }

  function answer({ requestId, code, message, result }, isError) {
    const action = pending.get(requestId)
    if (!action) return
    if (isError && retryable.has(code)) {
      setTimeout(() => isJoined && pending.has(requestId) && send(action.message), retryFirstMs)
      return
    }
    pending.delete(requestId)
    if (isError) action.reject(new Error(message))
    else action.resolve(result)
  }

  function receive(message) {
    switch (message.type) {
      case 'auth_success':
        onStatus('open', message.userId)
        return send({ type: 'join', ...position })
      case 'sync':
        shared = message.sharedState
        own = message.playerState
        position = {
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
        position.lastSharedVersion = message.version
        return onChange(shared, own)
      case 'player_delta':
        apply(own, message.delta)
        position.lastPlayerVersion = message.version
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
      if (pending.size >= pendingMax) return Promise.reject(new Error('Too many actions are pending'))
      const message = { type: 'send', actionType, payload, requestId: crypto.randomUUID() }
      return new Promise((resolve, reject) => {
        pending.set(message.requestId, { message, resolve, reject })
        if (isJoined) send(message)
      })
    },
    /** Frees the seat at once. A page that is closed keeps it during the reconnect grace. */
    leave: () => isJoined && send({ type: 'leave' }),
  }
}
