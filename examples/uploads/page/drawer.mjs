/** The user interface: pending uploads and stored files. `resumable.mjs` sends the uploads. */
import { cancelUpload, isSameFile, listPending, upload } from './resumable.mjs'
import { openSession } from './session.mjs'

const bucket = 'drawer'
const uploadsAtOnce = 3
const filesPerPage = 60
const reconnectMs = 2000
const thumbnail = 'width=320&height=240&format=webp'
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])

const find = (id) => document.getElementById(id)

/** Creates an element. Children are text, never markup, since file names are not trusted. */
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}

const button = (text, onclick) => make('button', { type: 'button', onclick }, text)

function formatBytes(bytes) {
  const units = ['B', 'kB', 'MB', 'GB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`
}

const formatShare = (part, total) => `${total === 0 ? 100 : Math.floor((100 * part) / total)} %`

function showState(state, text) {
  document.body.dataset.state = state
  find('state').textContent = text
}

/** A list item that shows an upload. */
function createLine({ name, size }) {
  const bar = make('progress', { max: Math.max(size, 1), value: 0, ariaLabel: name })
  const status = make('span', { className: 'status' })
  const buttons = make('span', { className: 'buttons' })
  const item = make('li', { className: 'upload' }, make('strong', {}, name), status, bar, buttons)
  item.dataset.upload = name
  find('pending').append(item)
  find('uploads').hidden = false
  const started = { ms: performance.now(), sent: 0 }
  let sent = 0
  let note = ''

  function render() {
    const seconds = (performance.now() - started.ms) / 1000
    const speed =
      item.dataset.state === 'sending' && seconds > 0.5
        ? ` · ${formatBytes(Math.max(0, sent - started.sent) / seconds)}/s`
        : ''
    const share = `${formatBytes(sent)} of ${formatBytes(size)} · ${formatShare(sent, size)}${speed}`
    status.textContent = note === '' ? share : `${share} · ${note}`
  }

  return {
    progress(now) {
      sent = now
      bar.value = now
      item.dataset.sent = String(now)
      render()
    },
    /** Shows the state, which style sheets can select, with a note and the available actions. */
    show(state, text, ...actions) {
      if (state === 'sending') Object.assign(started, { ms: performance.now(), sent })
      item.dataset.state = state
      note = text
      buttons.replaceChildren(...actions)
      render()
    },
    remove() {
      item.remove()
      find('uploads').hidden = find('pending').children.length === 0
    },
  }
}

/** The upload queue, and the interrupted uploads of earlier visits. */
function createUploads(url, session, onDone) {
  /** Interrupted uploads of earlier visits, by storage id. */
  const interrupted = new Map()
  const queue = []
  const active = new Set()

  function next() {
    while (active.size < uploadsAtOnce && queue.length > 0) queue.shift()()
  }

  function start(file, line) {
    const pause = button('Pause', () => sending.pause())
    const resume = button('Resume', () => sending.resume())
    const stop = button('Cancel', () => sending.cancel())

    function onState(state, reason = '') {
      if (state === 'sending' || state === 'waiting') active.add(line)
      else active.delete(line)
      if (state === 'sending') line.show(state, '', pause, stop)
      if (state === 'waiting') line.show(state, reason && `${reason}, retrying`, pause, stop)
      if (state === 'paused') line.show(state, 'paused', resume, stop)
      if (state === 'failed') line.show(state, reason, stop)
      if (state === 'done' || state === 'canceled') line.remove()
      if (state === 'done') onDone()
      next()
    }

    const sending = upload({
      url,
      session,
      bucket,
      key: `${session.userId}/${file.name}`,
      file,
      onProgress: line.progress,
      onState,
    })
  }

  function showInterrupted(pending) {
    const line = createLine(pending)
    interrupted.set(pending.id, { pending, line })
    line.progress(pending.sent)
    const cancel = async () => {
      interrupted.delete(pending.id)
      await cancelUpload(session, pending)
      line.remove()
    }
    line.show('interrupted', 'interrupted: choose the same file again to resume', button('Cancel', cancel))
  }

  listPending(session.userId).forEach(showInterrupted)

  return {
    add(file) {
      const before = [...interrupted.values()].find(({ pending }) => isSameFile(pending, session.userId, file))
      if (before) interrupted.delete(before.pending.id)
      const line = before?.line ?? createLine(file)
      line.show('queued', 'queued')
      queue.push(() => start(file, line))
      next()
    },
  }
}

/** The files of the drawer, page by page. */
function createFiles(session) {
  const path = `/api/storage/${bucket}`
  let cursor = null
  /** Lists may overlap when several uploads end at once; only the last one counts. */
  let readings = 0
  /** Cards by key. One whose file has not changed stays as it is, with its picture and its link. */
  const shown = new Map()

  async function read(after) {
    const reading = ++readings
    const query = new URLSearchParams({ prefix: `${session.userId}/`, limit: String(filesPerPage) })
    if (after !== null) query.set('cursor', after)
    const page = await (await session.request(`${path}?${query}`)).json()
    const isNew = ({ key, etag }) => shown.get(key)?.etag !== etag
    const fresh = page.objects.filter(isNew)
    const links = await sign(fresh.filter(({ contentType }) => pictures.has(contentType)))
    if (reading !== readings) return
    for (const file of fresh) shown.set(file.key, { etag: file.etag, card: createCard(file, links.get(file.key)) })
    const cards = page.objects.map(({ key }) => shown.get(key).card)
    if (after === null) find('files').replaceChildren(...cards)
    else find('files').append(...cards)
    cursor = page.cursor
    find('more').hidden = !page.truncated
    count()
  }

  /** An `img` element sends no token, so it needs a signed URL. */
  async function sign(files) {
    if (files.length === 0) return new Map()
    const keys = files.map(({ key }) => key)
    const answer = await session.request(`${path}/signed-urls`, { method: 'POST', json: { keys, expiresIn: '1h' } })
    const { urls } = await answer.json()
    return new Map(urls.map(({ key, url }) => [key, url]))
  }

  function count() {
    const files = find('files').children.length
    find('count').textContent = files === 1 ? '1 file' : `${files}${find('more').hidden ? '' : '+'} files`
    find('empty').hidden = files > 0
  }

  function createCard({ key, size, uploaded }, picture) {
    const name = key.slice(key.indexOf('/') + 1)
    const extension = /\.([^.]{1,5})$/.exec(name)?.[1] ?? 'file'
    const face = picture
      ? make('img', { className: 'face', src: `${picture}&${thumbnail}`, alt: '', width: 320, height: 240 })
      : make('span', { className: 'face' }, extension)
    const day = new Date(uploaded).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' })
    const note = make('span', { className: 'status' }, `${formatBytes(size)} · ${day}`)
    const buttons = make('span', { className: 'buttons' })
    const about = make('div', { className: 'about' }, make('strong', { title: name }, name), note, buttons)
    const card = make('li', { className: 'file' }, face, about)
    card.dataset.file = name
    buttons.append(
      button('Link', async () => {
        const json = { key, expiresIn: '10m' }
        const { url } = await (await session.request(`${path}/signed-url`, { method: 'POST', json })).json()
        const title = 'Anyone with this link can download the file for 10 minutes'
        const link = make('a', { href: url, title, target: '_blank', rel: 'noopener' }, 'Download')
        buttons.firstElementChild.replaceWith(link)
      }),
      button('Delete', async () => {
        await session.request(`${path}/${encodeURIComponent(key)}`, { method: 'DELETE' })
        shown.delete(key)
        card.remove()
        count()
      }),
    )
    return card
  }

  find('more').onclick = () => read(cursor)
  return { refresh: () => read(null) }
}

function acceptFiles(uploads) {
  const add = (list) => {
    for (const file of list) uploads.add(file)
  }
  const drop = find('drop')
  const input = find('choose')
  input.disabled = false
  input.onchange = () => {
    add(input.files)
    // Allows the same file to be chosen again.
    input.value = ''
  }
  const mark = (isOver) => (event) => {
    event.preventDefault()
    drop.classList.toggle('over', isOver)
    if (event.type === 'drop') add(event.dataTransfer.files)
  }
  drop.ondragover = mark(true)
  drop.ondragleave = mark(false)
  drop.ondrop = mark(false)
}

async function start() {
  const { url } = await (await fetch('settings.json')).json()
  const session = await openSession(url)
  const files = createFiles(session)
  await files.refresh()
  acceptFiles(createUploads(url, session, () => files.refresh().catch(showError)))
  showState('open', 'private, signed in with this browser')
}

function showError(error) {
  showState('failed', error.message)
}

/** Retries until the server is available. */
function connect() {
  start().catch((error) => {
    showState('connecting', error.status === undefined ? 'no connection, retrying' : error.message)
    setTimeout(connect, reconnectMs)
  })
}

addEventListener('unhandledrejection', ({ reason }) => showError(reason))
connect()
