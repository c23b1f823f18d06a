/** The page: joins the room, draws its state, and requests steps while a key or the pointer is pressed. */
import { find } from '../../page-dom.ts'
import { type Direction, move } from '../game.ts'
import { drawClock, drawGems, drawPlayers, drawScores, drawTaken, drawWalls } from './draw.ts'
import { watchInput } from './input.ts'
import { plinth, readArena, room } from './plinth.ts'

/** Slower than the 70 ms that the server requires between steps, so that none is rejected. */
const stepMs = 110
const clockMs = 250
const statusTexts = {
  joining: 'connecting …',
  reconnecting: 'connecting …',
  joined: 'live',
  closed: 'you have left; reload to join again',
}

const name = find<HTMLInputElement>('name')
/** Offset of the server's clock. */
let offsetMs = 0

const me = (): string => plinth.auth.user?.id ?? ''

const showClock = (): void => {
  const arena = readArena()
  if (arena) drawClock(arena, Date.now() + offsetMs)
}

function show(): void {
  const arena = readArena()
  if (!arena) return
  if (!find('walls').hasChildNodes()) drawWalls(arena)
  const away = new Set(room.members.current.flatMap(({ memberId, state }) => (state?.isAway ? [memberId] : [])))
  drawGems(arena)
  drawPlayers(arena, me(), away)
  drawScores(arena, me(), away)
  drawClock(arena, Date.now() + offsetMs)
  const own = arena.players[me()]
  if (own && document.activeElement !== name) name.value = own.name
}

function showStatus(): void {
  document.body.dataset.state = room.status
  document.body.dataset.user = me()
  find('state').textContent = statusTexts[room.status]
  if (room.status === 'joined') void readClock().catch(() => undefined)
}

/** Estimates the offset of the server's clock; half of the round trip is the age of the result. */
async function readClock(): Promise<void> {
  const sentAtMs = Date.now()
  const serverMs = await room.send('now')
  offsetMs = serverMs - (sentAtMs + Date.now()) / 2
  showClock()
}

/** The direction of a point of the window, along the longer axis. Null if the player is there. */
function directionTo({ clientX, clientY }: PointerEvent): Direction | null {
  const own = readArena()?.players[me()]
  if (!own) return null
  const field = find<SVGSVGElement>('field')
  const { left, top, width, height } = field.getBoundingClientRect()
  const { width: columns, height: rows } = field.viewBox.baseVal
  const dx = ((clientX - left) / width) * columns - own.x - 0.5
  const dy = ((clientY - top) / height) * rows - own.y - 0.5
  if (Math.max(Math.abs(dx), Math.abs(dy)) < 0.5) return null
  if (Math.abs(dx) > Math.abs(dy)) return dx > 0 ? 'right' : 'left'
  return dy > 0 ? 'down' : 'up'
}

/** Requests steps while there is a direction, each after the result of the previous one. */
function walk(): void {
  let isStepping = false
  const step = async (): Promise<void> => {
    if (isStepping) return
    const to = direction()
    if (to === null) return
    isStepping = true
    const pause = new Promise((resolve) => setTimeout(resolve, stepMs))
    // A rejected step is taken back by the client.
    await room.send('step', { to }).catch(() => undefined)
    await pause
    isStepping = false
    void step()
  }
  const direction = watchInput(directionTo, step)
}

const showPresence = (): void => room.setPresence({ isAway: document.hidden })

async function start(): Promise<void> {
  const session = (await plinth.auth.ready) ?? (await plinth.auth.signInAnonymously())
  // An anonymous user has no credentials: when the session has ended, the page begins with a new player.
  plinth.auth.onChange((next) => next?.user.id === session.user.id || location.reload())
  await room.join()
  showPresence()
  walk()
}

// The page moves its player at once, by the same rule as the server.
room.predict('step', (shared, userId, { to }) => move(shared, userId, to))
room.shared.subscribe(show)
room.members.subscribe(show)
room.player.subscribe(() => {
  const { gems, wins } = room.player.current
  find('own').textContent = `Gems: ${gems} · rounds won: ${wins}`
})
room.on('taken', drawTaken)
room.subscribe(showStatus)
setInterval(showClock, clockMs)
document.addEventListener('visibilitychange', showPresence)
find('naming').onsubmit = (event) => {
  event.preventDefault()
  name.blur()
}
name.onchange = () => void room.send('rename', { name: name.value }).catch(() => undefined)
find('leave').onclick = () => void room.leave()
start().catch((error: Error) => {
  find('state').textContent = error.message
})
