/** The page: what is on the way, and what is in the drawer. Sending is `resumable.mjs`'s business. */
import { giveUp, isKept, listKept, upload } from './resumable.mjs'
import { openSession } from './session.mjs'

const bucket = 'drawer'
const uploadsAtOnce = 3
const filesPerPage = 60
const reconnectMs = 2000
const thumbnail = 'width=320&height=240&format=webp'
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])

const find = (id) => document.getElementById(id)

/** An element with text in it, never markup: names of files come from anywhere. */
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

const formatShare = (part, whole) => `${whole === 0 ? 100 : Math.floor((100 * part) / whole)} %`

function say(state, text) {
  document.body.dataset.state = state
  find('state').textContent = text
}

/** A line of what is on the way. */
function createLine({ name, size }) {
  const bar = make('progress', { max: Math.max(size, 1), value: 0, ariaLabel: name })
  const told = make('span', { className: 'told' })
  const buttons = make('span', { className: 'buttons' })
  const item = make('li', { className: 'upload' }, make('strong', {}, name), told, bar, buttons)
  item.dataset.upload = name
  find('under-way').append(item)
  find('uploads').hidden = false
  const started = { ms: performance.now(), sent: 0 }
  let sent = 0
  let words = ''

  function tell() {
    const seconds = (performance.now() - started.ms) / 1000
    const speed =
      item.dataset.state === 'sending' && seconds > 0.5
        ? ` · ${formatBytes(Math.max(0, sent - started.sent) / seconds)}/s`
        : ''
    const share = `${formatBytes(sent)} of ${formatBytes(size)} · ${formatShare(sent, size)}${speed}`
    told.textContent = words === '' ? share : `${share} · ${words}`
  }

  return {
    progress(now) {
      sent = now
      bar.value = now
      item.dataset.sent = String(now)
      tell()
    },
    /** What it is doing, in a word for the style sheet and in words, and what can be done about it. */
    show(state, text, ...actions) {
      if (state === 'sending') Object.assign(started, { ms: performance.now(), sent })
      item.dataset.state = state
      words = text
      buttons.replaceChildren(...actions)
      tell()
    },
    remove() {
      item.remove()
      find('uploads').hidden = find('under-way').children.length === 0
    },
  }
}

/** Everything that is on the way: a few at once, the others in turn; and what an earlier visit has left. */
function createUploads(url, session, onDone) {
  /** Lines of uploads that an earlier visit began, by what they are kept under. */
  const left = new Map()
  const queue = []
  const active = new Set()

  function next() {
    while (active.size < uploadsAtOnce && queue.length > 0) queue.shift()()
  }

  function start(file, line) {
    const pause = button('Pause', () => sending.pause())
    const resume = button('Go on', () => sending.resume())
    const stop = button('Give up', () => sending.giveUp())

    function onState(state, reason = '') {
      if (state === 'sending' || state === 'waiting') active.add(line)
      else active.delete(line)
      if (state === 'sending') line.show(state, '', pause, stop)
      if (state === 'waiting') line.show(state, reason && `${reason}, trying again`, pause, stop)
      if (state === 'paused') line.show(state, 'paused', resume, stop)
      if (state === 'failed') line.show(state, reason, stop)
      if (state === 'done' || state === 'gone') line.remove()
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

  function showLeft(kept) {
    const line = createLine(kept)
    left.set(kept.id, { kept, line })
    line.progress(kept.sent)
    const forget = async () => {
      left.delete(kept.id)
      await giveUp(session, kept)
      line.remove()
    }
    line.show('left', 'stopped: choose the same file again to go on', button('Give up', forget))
  }

  listKept(session.userId).forEach(showLeft)

  return {
    add(file) {
      const before = [...left.values()].find(({ kept }) => isKept(kept, session.userId, file))
      if (before) left.delete(before.kept.id)
      const line = before?.line ?? createLine(file)
      line.show('queued', 'waiting for its turn')
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

  /** An `img` sends no token, so that its address has to carry one. */
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
    const note = make('span', { className: 'told' }, `${formatBytes(size)} · ${day}`)
    const buttons = make('span', { className: 'buttons' })
    const about = make('div', { className: 'about' }, make('strong', { title: name }, name), note, buttons)
    const card = make('li', { className: 'file' }, face, about)
    card.dataset.file = name
    buttons.append(
      button('Link', async () => {
        const json = { key, expiresIn: '10m' }
        const { url } = await (await session.request(`${path}/signed-url`, { method: 'POST', json })).json()
        const title = 'For 10 minutes, whoever has this link can fetch the file'
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
    // So that the same file can be chosen again.
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
  acceptFiles(createUploads(url, session, () => files.refresh().catch(complain)))
  say('open', 'yours alone, kept in this browser')
}

function complain(error) {
  say('failed', error.message)
}

/** Until there is a server. */
function connect() {
  start().catch((error) => {
    say('connecting', error.status === undefined ? 'no connection, trying again' : error.message)
    setTimeout(connect, reconnectMs)
  })
}

addEventListener('unhandledrejection', ({ reason }) => complain(reason))
connect()
