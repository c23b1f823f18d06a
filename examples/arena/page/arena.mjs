/** The page: draws the state of the room, and requests steps while a key or the pointer is pressed. */
import { joinRoom } from './room.mjs'
import { createUser } from './user.mjs'

/** Slower than the 70 ms that the server requires between steps, so that none is rejected. */
const stepMs = 110
const clockMs = 250
const directions = new Map([
  ['ArrowUp', 'up'],
  ['KeyW', 'up'],
  ['ArrowDown', 'down'],
  ['KeyS', 'down'],
  ['ArrowLeft', 'left'],
  ['KeyA', 'left'],
  ['ArrowRight', 'right'],
  ['KeyD', 'right'],
])
const stateTexts = {
  connecting: 'connecting …',
  open: 'live',
  full: 'this arena is full',
  left: 'you have left; reload to join again',
  kicked: 'you were kicked',
  'protocol-error': 'the server rejected a message of this page',
}
const phaseTexts = { waiting: 'Waiting', playing: 'This round ends in', break: 'The next round starts in' }

const find = (id) => document.getElementById(id)
const colorOf = ({ hue }) => `hsl(${hue} 75% 62%)`

let shared = { players: {}, gems: {} }
let userId = null
/** Offset of the server's clock. */
let offsetMs = 0

function element(name, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

function drawWalls({ field }) {
  const walls = field.flatMap((row, y) => [...row].flatMap((cell, x) => (cell === '#' ? [{ x, y }] : [])))
  const size = { width: 1, height: 1 }
  find('walls').replaceChildren(...walls.map((place) => element('rect', { ...place, ...size })))
}

/** Reconciles the children of `parent` with `items` by key: `create` makes new elements, `update` changes all. */
function draw(parent, items, create, update) {
  const marks = new Map([...parent.children].map((mark) => [mark.dataset.key, mark]))
  for (const [key, item] of Object.entries(items)) {
    let mark = marks.get(key)
    if (!mark) {
      mark = create(item)
      mark.dataset.key = key
      parent.append(mark)
    }
    marks.delete(key)
    update(mark, item, key)
    mark.dataset.at = `${item.x},${item.y}`
    mark.style.transform = `translate(${item.x}px, ${item.y}px)`
  }
  for (const mark of marks.values()) mark.remove()
}

function drawPlayers() {
  draw(
    find('players'),
    shared.players,
    () => element('g', {}, element('circle', { cx: 0.5, cy: 0.5, r: 0.42 }), element('text', { x: 0.5, y: -0.12 })),
    (mark, player, id) => {
      mark.setAttribute('class', id === userId ? 'player own' : 'player')
      mark.firstElementChild.style.fill = colorOf(player)
      mark.lastElementChild.textContent = player.name
      // A name above the top row would be clipped.
      mark.lastElementChild.setAttribute('y', player.y === 0 ? 1.35 : -0.12)
    },
  )
}

function drawGems() {
  const shape = { x: -0.22, y: -0.22, width: 0.44, height: 0.44, rx: 0.06, transform: 'translate(.5 .5) rotate(45)' }
  draw(
    find('gems'),
    shared.gems,
    () => element('g', {}, element('rect', shape)),
    (mark, { value }) => mark.setAttribute('class', value > 1 ? 'gem precious' : 'gem'),
  )
}

/** Names are user input: they are set as text, never as markup. */
function drawScores() {
  const players = Object.entries(shared.players).sort(([, a], [, b]) => b.score - a.score || (a.name < b.name ? -1 : 1))
  find('scores').replaceChildren(
    ...players.map(([id, player]) => {
      const item = document.createElement('li')
      const score = document.createElement('span')
      score.textContent = String(player.score)
      item.className = id === userId ? 'own' : ''
      item.style.setProperty('--color', colorOf(player))
      item.append(player.name, score)
      return item
    }),
  )
  const { names, score } = shared.winner ?? { names: [], score: 0 }
  find('winner').textContent = names.length > 0 ? `${names.join(' and ')}, with ${score}` : '—'
}

function drawClock() {
  const { phase, round, endsAtMs } = shared
  if (phase === undefined) return
  find('phase').textContent = phaseTexts[phase]
  const seconds = Math.max(0, Math.ceil((endsAtMs - offsetMs - Date.now()) / 1000))
  find('seconds').textContent = phase === 'waiting' ? '' : String(seconds)
  document.body.dataset.round = String(round)
}

function showChange(next, own) {
  const isFirst = shared.field === undefined
  shared = next
  if (isFirst) drawWalls(shared)
  drawGems()
  drawPlayers()
  drawScores()
  drawClock()
  find('own').textContent = `Gems: ${own.gems} · rounds won: ${own.wins}`
  const name = shared.players[userId]?.name
  if (name !== undefined && document.activeElement !== find('name')) find('name').value = name
}

function showTaken({ x, y, value }) {
  const pop = element('text', { class: value > 1 ? 'pop precious' : 'pop', x: x + 0.5, y: y + 0.3 }, `+${value}`)
  pop.addEventListener('animationend', () => pop.remove())
  find('pops').append(pop)
}

/** Counts an event in a data attribute, for tests. */
function count(what) {
  document.body.dataset[what] = String(Number(document.body.dataset[what]) + 1)
}

/** The direction of a point of the window, along the longer axis. Null if the player is there. */
function directionTo({ clientX, clientY }) {
  const own = shared.players[userId]
  const { left, top, width, height } = find('field').getBoundingClientRect()
  const { width: columns, height: rows } = find('field').viewBox.baseVal
  if (!own) return null
  const dx = ((clientX - left) / width) * columns - own.x - 0.5
  const dy = ((clientY - top) / height) * rows - own.y - 0.5
  if (Math.max(Math.abs(dx), Math.abs(dy)) < 0.5) return null
  if (Math.abs(dx) > Math.abs(dy)) return dx > 0 ? 'right' : 'left'
  return dy > 0 ? 'down' : 'up'
}

/**
 * Returns a function that reads the current direction: of the last pressed key, or of the pointer; null without one. A
 * key that was released before it was read counts once.
 */
function watchInput(onBegin) {
  const pressed = []
  let tapped = null
  let pointer = null
  const release = (code) => pressed.includes(code) && pressed.splice(pressed.indexOf(code), 1)
  window.addEventListener('keydown', (event) => {
    const { code, target } = event
    if (!directions.has(code) || target === find('name') || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    if (event.repeat) return
    pressed.push(code)
    tapped = code
    onBegin()
  })
  window.addEventListener('keyup', ({ code }) => release(code))
  window.addEventListener('blur', () => pressed.splice(0))
  const field = find('field')
  field.addEventListener('pointerdown', (event) => {
    field.setPointerCapture(event.pointerId)
    pointer = event
    onBegin()
  })
  field.addEventListener('pointermove', (event) => {
    if (pointer) pointer = event
  })
  for (const end of ['pointerup', 'pointercancel']) field.addEventListener(end, () => (pointer = null))
  return () => {
    const code = tapped ?? pressed.at(-1)
    tapped = null
    return directions.get(code) ?? (pointer && directionTo(pointer))
  }
}

/** Requests steps while there is a direction, each after the response to the previous one. */
function walk(room) {
  let isStepping = false
  const step = async () => {
    if (isStepping) return
    const to = direction()
    if (to === null) return
    isStepping = true
    const pause = new Promise((resolve) => setTimeout(resolve, stepMs))
    // A rejected step needs no rollback, since nothing was drawn in advance.
    await room.act('step', { to }).catch(() => {})
    await pause
    isStepping = false
    step()
  }
  const direction = watchInput(step)
}

/** Estimates the offset of the server's clock; half of the round trip is the age of the response. */
async function readClock(room) {
  const sentAtMs = Date.now()
  const serverMs = await room.act('now')
  offsetMs = serverMs - (sentAtMs + Date.now()) / 2
}

async function start() {
  const { url } = await (await fetch('settings.json')).json()
  const room = joinRoom({
    url,
    namespace: 'arena',
    id: new URLSearchParams(location.search).get('arena') ?? 'main',
    user: createUser(url),
    onChange: showChange,
    onMessage: (messageType, data) => messageType === 'taken' && showTaken(data),
    onStatus(state, id) {
      userId = id ?? userId
      document.body.dataset.state = state
      document.body.dataset.user = userId ?? ''
      find('state').textContent = stateTexts[state]
    },
    onJoined(isResumed) {
      count(isResumed ? 'resumed' : 'joined')
      readClock(room).catch(() => {})
    },
  })
  walk(room)
  setInterval(drawClock, clockMs)
  find('naming').addEventListener('submit', (event) => {
    event.preventDefault()
    find('name').blur()
  })
  find('name').addEventListener('change', ({ target }) => room.act('rename', { name: target.value }).catch(() => {}))
  find('leave').addEventListener('click', room.leave)
}

start()
