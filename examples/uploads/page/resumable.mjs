/**
 * A resumable upload with tus 1.0: queries the offset, sends the next chunk, and repeats this after every interruption
 * of the connection, the server or the page. The URL of the upload is stored in this browser until the upload is
 * complete. Independent of the user interface.
 */

/** Bytes per request; an interrupted request loses at most this much. */
const chunkBytes = 8 * 1024 * 1024
/** A request without progress for this long is aborted. */
const stalledMs = 30_000
const retryFirstMs = 300
const retryMostMs = 5000
const prefix = 'drawer.upload.'
const tus = { 'Tus-Resumable': '1.0.0' }

/**
 * An unfinished upload of this browser.
 * @typedef {object} Pending
 * @property {string} id The key in `localStorage`.
 * @property {string} location Path of the upload on the server.
 * @property {string} name
 * @property {number} size
 * @property {number} sent The last known offset of the server.
 */

/** Identifies a file without reading it, so that an upload resumes when the same file is chosen again. */
const idOf = (userId, { name, size, lastModified }) => `${prefix}${userId}/${name}/${size}/${lastModified}`

/** @returns {Pending[]} */
export function listPending(userId) {
  return Object.keys(localStorage)
    .filter((id) => id.startsWith(`${prefix}${userId}/`))
    .map((id) => ({ id, ...JSON.parse(localStorage.getItem(id)) }))
}

export const isSameFile = (pending, userId, file) => pending.id === idOf(userId, file)

/** Cancels an upload and deletes its bytes on the server. */
export async function cancelUpload(session, { id, location }) {
  await session.request(location, { method: 'DELETE', headers: tus }).catch((error) => {
    if (error.status !== 404) throw error
  })
  localStorage.removeItem(id)
}

/** UTF-8 text in base64, the encoding of tus metadata. */
const encode = (text) => btoa(String.fromCodePoint(...new TextEncoder().encode(text)))

/** Whether a retry may succeed: no connection, a conflicting offset, a rate limit, or an unavailable server. */
const isTransient = (status) => status === undefined || status === 409 || status === 429 || status >= 500

/**
 * @typedef {'sending' | 'waiting' | 'paused' | 'done' | 'failed' | 'canceled'} State
 * @typedef {object} Options
 * @property {string} url
 * @property {import('./session.mjs').Session} session
 * @property {string} bucket
 * @property {string} key
 * @property {File} file
 * @property {(sent: number) => void} onProgress Bytes sent so far; decreases when a chunk fails.
 * @property {(state: State, reason?: string) => void} onState
 */

/**
 * Starts or resumes the upload of a file.
 * @param {Options} options
 */
export function upload({ url, session, bucket, key, file, onProgress, onState }) {
  const id = idOf(session.userId, file)
  let state = 'waiting'
  let retryMs = retryFirstMs
  /** Aborts the current request or wait. */
  let interrupt = () => {}

  const change = (next, reason) => {
    state = next
    onState(next, reason)
  }
  const save = (location, sent) =>
    localStorage.setItem(id, JSON.stringify({ location, name: file.name, size: file.size, sent }))

  async function create() {
    const metadata = [`key ${encode(key)}`]
    if (file.type !== '') metadata.push(`contentType ${encode(file.type)}`)
    const { headers } = await session.request(`/api/storage/${bucket}/uploads/tus`, {
      method: 'POST',
      headers: { ...tus, 'Upload-Length': String(file.size), 'Upload-Metadata': metadata.join(',') },
    })
    save(headers.get('Location'), 0)
    return { location: headers.get('Location'), offset: 0 }
  }

  /** The URL and the offset of the upload; creates it if necessary. */
  async function find() {
    const pending = JSON.parse(localStorage.getItem(id) ?? 'null')
    if (pending === null) return create()
    try {
      const { headers } = await session.request(pending.location, { method: 'HEAD', headers: tus })
      return { location: pending.location, offset: Number(headers.get('Upload-Offset')) }
    } catch (error) {
      // Canceled in another window, or expired.
      if (error.status === 404) return create()
      throw error
    }
  }

  /** Sends one chunk and resolves with the new offset. Uses XMLHttpRequest, since `fetch` reports no progress. */
  function send(location, offset) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest()
      let stalled
      const restartTimer = () => {
        clearTimeout(stalled)
        stalled = setTimeout(() => request.abort(), stalledMs)
      }
      request.open('PATCH', url + location)
      for (const [name, value] of Object.entries(tus)) request.setRequestHeader(name, value)
      request.setRequestHeader('Authorization', session.authorization())
      request.setRequestHeader('Content-Type', 'application/offset+octet-stream')
      request.setRequestHeader('Upload-Offset', String(offset))
      request.upload.onprogress = ({ loaded }) => {
        restartTimer()
        onProgress(offset + loaded)
      }
      request.onloadend = () => {
        clearTimeout(stalled)
        if (request.status === 204) return resolve(Number(request.getResponseHeader('Upload-Offset')))
        const status = request.status || undefined
        reject(Object.assign(new Error(messageOf(request)), { status }))
      }
      interrupt = () => request.abort()
      restartTimer()
      request.send(file.slice(offset, offset + chunkBytes))
    })
  }

  /** Sends the rest of the file. Rejects when a request fails. */
  async function sendAll() {
    let { location, offset } = await find()
    onProgress(offset)
    while (state === 'sending' && offset < file.size) {
      offset = await send(location, offset)
      retryMs = retryFirstMs
      save(location, offset)
      onProgress(offset)
    }
    if (state !== 'sending') return
    localStorage.removeItem(id)
    change('done')
  }

  /** Waits with exponential backoff and jitter, or until the network is back. */
  function wait() {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        removeEventListener('online', end)
        resolve()
      }
      const timer = setTimeout(end, retryMs * (0.5 + Math.random() / 2))
      retryMs = Math.min(2 * retryMs, retryMostMs)
      addEventListener('online', end)
      interrupt = end
    })
  }

  /** Renews the access token, which can expire during a chunk. Resolves with the error, or null. */
  const renewToken = () =>
    session.renew().then(
      () => null,
      (error) => error,
    )

  async function run() {
    while (state === 'waiting') {
      change('sending')
      try {
        await sendAll()
      } catch (error) {
        const reason = error.status === 401 ? await renewToken() : error
        if (state !== 'sending') return
        if (reason !== null && !isTransient(reason.status)) return change('failed', reason.message)
        change('waiting', reason?.message)
        if (reason !== null) await wait()
      }
    }
  }

  let running = run()
  return {
    pause() {
      change('paused')
      interrupt()
    },
    async resume() {
      // The previous request must end first, since the server accepts one chunk at a time.
      await running
      change('waiting')
      running = run()
    },
    async cancel() {
      state = 'canceled'
      interrupt()
      await running
      const pending = listPending(session.userId).find((one) => one.id === id)
      if (pending) await cancelUpload(session, pending)
      change('canceled')
    },
  }
}

/** The error message of the server, or a description of the failure. */
function messageOf({ status, responseText }) {
  if (status === 0) return 'no connection'
  try {
    return JSON.parse(responseText).message
  } catch {
    return `HTTP status ${status}`
  }
}
