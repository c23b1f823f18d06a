/**
 * One resumable upload, by tus 1.0: asks the server how much it has, sends the next piece, and does so again whenever
 * the connection, the server or the page was gone in between. The address of the upload is kept in this browser until
 * the file is there. Knows nothing of what is shown.
 */

/** Sent in one request. What is lost with a connection is less than this. */
const pieceBytes = 8 * 1024 * 1024
/** A connection over which nothing has moved for so long is given up. */
const stalledMs = 30_000
const retryFirstMs = 300
const retryMostMs = 5000
const prefix = 'drawer.upload.'
const tus = { 'Tus-Resumable': '1.0.0' }

/**
 * An upload that was begun in this browser and has not ended.
 * @typedef {object} Kept
 * @property {string} id What this browser keeps it under.
 * @property {string} location Path of the upload on the server.
 * @property {string} name
 * @property {number} size
 * @property {number} sent Bytes the server was known to have.
 */

/** A page cannot open a file again by itself, but it can tell that it was given the same one. */
const idOf = (userId, { name, size, lastModified }) => `${prefix}${userId}/${name}/${size}/${lastModified}`

/** @returns {Kept[]} */
export function listKept(userId) {
  return Object.keys(localStorage)
    .filter((id) => id.startsWith(`${prefix}${userId}/`))
    .map((id) => ({ id, ...JSON.parse(localStorage.getItem(id)) }))
}

export const isKept = (kept, userId, file) => kept.id === idOf(userId, file)

/** Gives up an upload: the server forgets what it has of it. */
export async function giveUp(session, { id, location }) {
  await session.request(location, { method: 'DELETE', headers: tus }).catch((error) => {
    if (error.status !== 404) throw error
  })
  localStorage.removeItem(id)
}

/** Text in base64, as tus wants its metadata. */
const encode = (text) => btoa(String.fromCodePoint(...new TextEncoder().encode(text)))

/** Answers by which the server says that trying again may help: it starts, it is busy, or somebody else was faster. */
const mayPass = (status) => status === undefined || status === 409 || status === 429 || status >= 500

/**
 * @typedef {'sending' | 'waiting' | 'paused' | 'done' | 'failed' | 'gone'} State
 * @typedef {object} Options
 * @property {string} url
 * @property {import('./session.mjs').Session} session
 * @property {string} bucket
 * @property {string} key
 * @property {File} file
 * @property {(sent: number) => void} onProgress Bytes that have left this browser; fewer again after a broken piece.
 * @property {(state: State, reason?: string) => void} onState
 */

/**
 * Starts, or goes on with, the upload of a file.
 * @param {Options} options
 */
export function upload({ url, session, bucket, key, file, onProgress, onState }) {
  const id = idOf(session.userId, file)
  let state = 'waiting'
  let retryMs = retryFirstMs
  /** Ends the request or the wait that is under way. */
  let interrupt = () => {}

  const change = (next, reason) => {
    state = next
    onState(next, reason)
  }
  const keep = (location, sent) =>
    localStorage.setItem(id, JSON.stringify({ location, name: file.name, size: file.size, sent }))

  async function create() {
    const metadata = [`key ${encode(key)}`]
    if (file.type !== '') metadata.push(`contentType ${encode(file.type)}`)
    const { headers } = await session.request(`/api/storage/${bucket}/uploads/tus`, {
      method: 'POST',
      headers: { ...tus, 'Upload-Length': String(file.size), 'Upload-Metadata': metadata.join(',') },
    })
    keep(headers.get('Location'), 0)
    return { location: headers.get('Location'), offset: 0 }
  }

  /** Where the upload is, and how much of it the server has. */
  async function find() {
    const kept = JSON.parse(localStorage.getItem(id) ?? 'null')
    if (kept === null) return create()
    try {
      const { headers } = await session.request(kept.location, { method: 'HEAD', headers: tus })
      return { location: kept.location, offset: Number(headers.get('Upload-Offset')) }
    } catch (error) {
      // Given up in another window, or left alone for too long.
      if (error.status === 404) return create()
      throw error
    }
  }

  /** Sends one piece; resolves with how much the server has then. `fetch` cannot tell how far it is, this can. */
  function send(location, offset) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest()
      let stalled
      const moved = () => {
        clearTimeout(stalled)
        stalled = setTimeout(() => request.abort(), stalledMs)
      }
      request.open('PATCH', url + location)
      for (const [name, value] of Object.entries(tus)) request.setRequestHeader(name, value)
      request.setRequestHeader('Authorization', session.authorization())
      request.setRequestHeader('Content-Type', 'application/offset+octet-stream')
      request.setRequestHeader('Upload-Offset', String(offset))
      request.upload.onprogress = ({ loaded }) => {
        moved()
        onProgress(offset + loaded)
      }
      request.onloadend = () => {
        clearTimeout(stalled)
        if (request.status === 204) return resolve(Number(request.getResponseHeader('Upload-Offset')))
        const status = request.status || undefined
        reject(Object.assign(new Error(messageOf(request)), { status }))
      }
      interrupt = () => request.abort()
      moved()
      request.send(file.slice(offset, offset + pieceBytes))
    })
  }

  /** From wherever it is to the end. Rejects where it breaks off. */
  async function sendAll() {
    let { location, offset } = await find()
    onProgress(offset)
    while (state === 'sending' && offset < file.size) {
      offset = await send(location, offset)
      retryMs = retryFirstMs
      keep(location, offset)
      onProgress(offset)
    }
    if (state !== 'sending') return
    localStorage.removeItem(id)
    change('done')
  }

  /** Waits for longer each time, at random, and no longer than until the network is back. */
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

  /** A piece may take longer than a token lasts. What stands in the way of a new one, or null. */
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
        if (reason !== null && !mayPass(reason.status)) return change('failed', reason.message)
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
      // What was under way has to have ended: the server takes one piece at a time.
      await running
      change('waiting')
      running = run()
    },
    async giveUp() {
      state = 'gone'
      interrupt()
      await running
      const kept = listKept(session.userId).find((one) => one.id === id)
      if (kept) await giveUp(session, kept)
      change('gone')
    },
  }
}

/** What the server said, or that it did not. */
function messageOf({ status, responseText }) {
  if (status === 0) return 'no connection'
  try {
    return JSON.parse(responseText).message
  } catch {
    return `The server said ${status}`
  }
}
