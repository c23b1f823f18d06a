/**
 * The rules of the game. They run on the server: a page requests steps and receives the positions of all players. A
 * round lasts a minute; the player with the highest score wins.
 */
import type { Room, RoomPlayer } from 'plinth'

/** `#` is a wall. */
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
/** One gem in five is worth three points. */
const preciousEvery = 5
const roundMs = 60_000
const breakMs = 8000
/** Shortest time between two steps. Pages step every 110 ms. */
const stepLeastMs = 70
const nameChars = 16
const steps = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] } as const
/** As many as `maxPlayers`. */
const animals = [
  ...['Badger', 'Crane', 'Dormouse', 'Fox', 'Gecko', 'Heron', 'Ibex', 'Jackal'],
  ...['Kestrel', 'Lynx', 'Marten', 'Newt', 'Otter', 'Puffin', 'Quail', 'Raven'],
]

interface Position {
  x: number
  y: number
}

export type Direction = keyof typeof steps

/** The shared state. */
export interface Arena {
  field: readonly string[]
  phase: 'waiting' | 'playing' | 'break'
  round: number
  /** End of the phase by the server's clock. */
  endsAtMs: number
  players: Record<string, Position & { name: string; hue: number; score: number }>
  gems: Record<string, Position & { value: number }>
  /** Of the previous round; without names if no player scored. */
  winner?: { names: string[]; score: number }
}

const arenaOf = (room: Room): Arena => room.shared as Arena

const isAt = ({ x, y }: Position) => {
  return (other: Position): boolean => other.x === x && other.y === y
}

const isFloor = ({ x, y }: Position): boolean => field[y]?.[x] === '.'

const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T

/**
 * Moves a player one step, unless a wall or a player is in the way; the page predicts its steps with it. Returns the
 * new position; null if the player has not moved.
 */
export function move({ players }: Arena, id: string, to: Direction): Position | null {
  const mark = players[id]
  if (!mark) return null
  const [dx, dy] = steps[to]
  const position = { x: mark.x + dx, y: mark.y + dy }
  if (!isFloor(position) || Object.values(players).some(isAt(position))) return null
  Object.assign(mark, position)
  return position
}

/** A random free position. */
function findFreePosition({ players, gems }: Arena): Position {
  const taken = [...Object.values(players), ...Object.values(gems)]
  const positions = field.flatMap((row, y) => [...row].map((_, x) => ({ x, y })))
  return pick(positions.filter((position) => isFloor(position) && !taken.some(isAt(position))))
}

function pickName({ players }: Arena): string {
  const used = new Set(Object.values(players).map(({ name }) => name))
  return pick(animals.filter((name) => !used.has(name)))
}

/** An unused hue, in steps of the golden angle, which keeps the first hues far apart. */
function pickHue({ players }: Arena): number {
  const used = new Set(Object.values(players).map(({ hue }) => hue))
  for (let index = 0; ; index++) {
    const hue = Math.round(index * 137.5 + 45) % 360
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
  arena.gems[key] = { ...findFreePosition(arena), value }
}

function collectGem(room: Room, player: RoomPlayer, position: Position): void {
  const arena = arenaOf(room)
  const [key, gem] = Object.entries(arena.gems).find(([, other]) => isAt(position)(other)) ?? []
  const mark = arena.players[player.id]
  if (!key || !gem || !mark) return
  const { value } = gem
  mark.score += value
  player.state.gems += value
  room.broadcast('taken', { ...position, value, playerId: player.id })
  putGem(arena, key)
}

export function onCreate(room: Room): void {
  room.shared = { field, phase: 'waiting', round: 0, endsAtMs: 0, players: {}, gems: {} } satisfies Arena
  room.server = { steppedAtMs: {} }
}

export function onJoin(room: Room, player: RoomPlayer): void {
  const arena = arenaOf(room)
  player.state = { gems: 0, wins: 0 }
  arena.players[player.id] = { ...findFreePosition(arena), name: pickName(arena), hue: pickHue(arena), score: 0 }
  if (arena.phase === 'waiting') startRound(room)
}

export function onLeave(room: Room, player: RoomPlayer): void {
  delete arenaOf(room).players[player.id]
  delete room.server.steppedAtMs[player.id]
}

export const actions = {
  /** Moves one step, unless a wall or a player is in the way. Returns the position of the player. */
  step(room: Room, player: RoomPlayer, payload: { to: Direction }): Position {
    const to: unknown = payload?.to
    const arena = arenaOf(room)
    const mark = arena.players[player.id]
    if (typeof to !== 'string' || !Object.hasOwn(steps, to) || !mark)
      throw new Error('to must be up, down, left or right')
    const nowMs = Date.now()
    if (nowMs - (room.server.steppedAtMs[player.id] ?? 0) < stepLeastMs)
      throw new Error('Steps are limited to one per 70 ms')
    room.server.steppedAtMs[player.id] = nowMs
    const position = move(arena, player.id, to as Direction)
    if (position) collectGem(room, player, position)
    return { x: mark.x, y: mark.y }
  },

  rename(room: Room, player: RoomPlayer, payload: { name: string }): void {
    const name: unknown = payload?.name
    const text = typeof name === 'string' ? name.replace(/\s+/g, ' ').trim() : ''
    const mark = arenaOf(room).players[player.id]
    if (text === '' || [...text].length > nameChars || !mark)
      throw new Error(`name must be 1 to ${nameChars} characters`)
    mark.name = text
  },

  /** The server's clock, for the countdown of the page. */
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

  /** An empty arena waits for the next player. */
  nextRound(room: Room): void {
    if (room.players.size > 0) startRound(room)
    else arenaOf(room).phase = 'waiting'
  },
}
