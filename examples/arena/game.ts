/**
 * The rules of the game, all of which are the server's: a page asks for a step and is told where everybody is. A round
 * lasts a minute; who has taken the most by then has won it.
 */
import type { Room, RoomPlayer } from 'plinth'

/** `#` is wall. */
const field = [
  '........................',
  '..####............####..',
  '..#..................#..',
  '.........##..##.........',
  '....#....#....#....#....',
  '....#..............#....',
  '.......##......##.......',
  '.......##......##.......',
  '....#..............#....',
  '....#....#....#....#....',
  '.........##..##.........',
  '..#..................#..',
  '..####............####..',
  '........................',
]
const gemsOut = 10
/** One gem in so many is worth three. */
const preciousEvery = 5
const roundMs = 60_000
const breakMs = 8000
/** Pages step every 110 ms; what comes faster than this has not been sent by one of them. */
const stepLeastMs = 70
const nameChars = 16
const steps = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] } as const
/** One for each who may play. */
const animals = [
  ...['Badger', 'Crane', 'Dormouse', 'Fox', 'Gecko', 'Heron', 'Ibex', 'Jackal'],
  ...['Kestrel', 'Lynx', 'Marten', 'Newt', 'Otter', 'Puffin', 'Quail', 'Raven'],
]

interface Place {
  x: number
  y: number
}

/** What everybody sees. */
interface Arena {
  field: readonly string[]
  phase: 'waiting' | 'playing' | 'break'
  round: number
  /** Of the phase, by the server's clock. */
  endsAtMs: number
  players: Record<string, Place & { name: string; hue: number; score: number }>
  gems: Record<string, Place & { value: number }>
  /** Of the round before; nobody's name where nobody took anything. */
  winner?: { names: string[]; score: number }
}

const arenaOf = (room: Room): Arena => room.shared as Arena

const isAt = ({ x, y }: Place) => {
  return (other: Place): boolean => other.x === x && other.y === y
}

const isFloor = ({ x, y }: Place): boolean => field[y]?.[x] === '.'

const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T

/** Some place where nothing is. */
function findRoomFor({ players, gems }: Arena): Place {
  const taken = [...Object.values(players), ...Object.values(gems)]
  const places = field.flatMap((row, y) => [...row].map((_, x) => ({ x, y })))
  return pick(places.filter((place) => isFloor(place) && !taken.some(isAt(place))))
}

function pickName({ players }: Arena): string {
  const used = new Set(Object.values(players).map(({ name }) => name))
  return pick(animals.filter((name) => !used.has(name)))
}

/** A hue that nobody has, going round the circle in golden steps, which keeps the first ones far apart. */
function pickHue({ players }: Arena): number {
  const used = new Set(Object.values(players).map(({ hue }) => hue))
  for (let turn = 0; ; turn++) {
    const hue = Math.round(turn * 137.5 + 45) % 360
    if (!used.has(hue)) return hue
  }
}

function startRound(room: Room): void {
  const arena = arenaOf(room)
  arena.phase = 'playing'
  arena.round += 1
  arena.endsAtMs = Date.now() + roundMs
  for (const player of Object.values(arena.players)) player.score = 0
  for (let gem = 0; gem < gemsOut; gem++) putGem(arena, `g${gem}`)
  room.after(roundMs, 'endRound')
}

function putGem(arena: Arena, key: string): void {
  delete arena.gems[key]
  const value = Math.random() * preciousEvery < 1 ? 3 : 1
  arena.gems[key] = { ...findRoomFor(arena), value }
}

function take(room: Room, player: RoomPlayer, place: Place): void {
  const arena = arenaOf(room)
  const [key, gem] = Object.entries(arena.gems).find(([, other]) => isAt(place)(other)) ?? []
  const mark = arena.players[player.id]
  if (!key || !gem || !mark) return
  const { value } = gem
  mark.score += value
  player.state.gems += value
  room.broadcast('taken', { ...place, value, playerId: player.id })
  putGem(arena, key)
}

export function onCreate(room: Room): void {
  room.shared = { field, phase: 'waiting', round: 0, endsAtMs: 0, players: {}, gems: {} } satisfies Arena
  room.server = { steppedAtMs: {} }
}

export function onJoin(room: Room, player: RoomPlayer): void {
  const arena = arenaOf(room)
  player.state = { gems: 0, wins: 0 }
  arena.players[player.id] = { ...findRoomFor(arena), name: pickName(arena), hue: pickHue(arena), score: 0 }
  if (arena.phase === 'waiting') startRound(room)
}

export function onLeave(room: Room, player: RoomPlayer): void {
  delete arenaOf(room).players[player.id]
  delete room.server.steppedAtMs[player.id]
}

export const actions = {
  /** One step; into a wall or somebody else it leads nowhere. Gives where the player is now. */
  step(room: Room, player: RoomPlayer, payload: { to?: unknown } | null): Place {
    const to = payload?.to
    const arena = arenaOf(room)
    const mark = arena.players[player.id]
    if (typeof to !== 'string' || !Object.hasOwn(steps, to) || !mark) throw new Error('There is no such step')
    const nowMs = Date.now()
    if (nowMs - (room.server.steppedAtMs[player.id] ?? 0) < stepLeastMs) throw new Error('Not so fast')
    room.server.steppedAtMs[player.id] = nowMs
    const [dx, dy] = steps[to as keyof typeof steps]
    const place = { x: mark.x + dx, y: mark.y + dy }
    if (isFloor(place) && !Object.values(arena.players).some(isAt(place))) {
      Object.assign(mark, place)
      take(room, player, place)
    }
    return { x: mark.x, y: mark.y }
  },

  rename(room: Room, player: RoomPlayer, payload: { name?: unknown } | null): void {
    const name = payload?.name
    const text = typeof name === 'string' ? name.replace(/\s+/g, ' ').trim() : ''
    const mark = arenaOf(room).players[player.id]
    if (text === '' || [...text].length > nameChars || !mark) throw new Error(`A name has 1 to ${nameChars} characters`)
    mark.name = text
  },

  /** What the server's clock says, for a countdown that does not trust the page's. */
  now: (): number => Date.now(),
}

export const timers = {
  endRound(room: Room): void {
    const arena = arenaOf(room)
    const marks = Object.entries(arena.players)
    const score = Math.max(0, ...marks.map(([, mark]) => mark.score))
    const winners = score > 0 ? marks.filter(([, mark]) => mark.score === score) : []
    arena.winner = { names: winners.map(([, { name }]) => name), score }
    for (const [id] of winners) {
      const player = room.players.get(id)
      if (player) player.state.wins += 1
    }
    arena.phase = 'break'
    arena.endsAtMs = Date.now() + breakMs
    arena.gems = {}
    room.setMetadata({ round: arena.round, winner: arena.winner })
    room.after(breakMs, 'nextRound')
  },

  /** An arena that nobody is in rests until somebody comes. */
  nextRound(room: Room): void {
    if (room.players.size > 0) startRound(room)
    else arenaOf(room).phase = 'waiting'
  },
}
