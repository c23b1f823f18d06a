/**
 * Others to play with: anonymous users who walk towards the nearest gem, and may go where everybody may. They join as
 * the page does, with its own `room.mjs`.
 *
 * . examples/arena/data/demo.env
 * node scripts/run.mjs examples/arena/bots.ts [--count 3] [--seconds 60] [--arena main]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { joinRoom } from './page/room.mjs'

/** As fast as a key that is held. */
const stepMs = 110
/** They look where they go only now and then, so that people can win. */
const mistakes = 0.4
/** A bot never asks for a second token: it is gone before the first one is. */
const tokenMs = 15 * 60 * 1000
const secondsMost = 600
const ways = ['up', 'down', 'left', 'right'] as const

interface Place {
  readonly x: number
  readonly y: number
}
interface Arena {
  readonly players: Readonly<Record<string, Place & { readonly name: string; readonly score: number }>>
  readonly gems: Readonly<Record<string, Place>>
}

const distance = (a: Place, b: Place): number => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)
const anyWay = () => ways[Math.floor(Math.random() * ways.length)]

/** Towards the nearest gem, as the crow flies; anywhere when there is none, or by mistake. */
function choose(own: Place | undefined, gems: readonly Place[]): string | undefined {
  const [gem] = own ? gems.toSorted((a, b) => distance(own, a) - distance(own, b)) : []
  if (!own || !gem || Math.random() < mistakes) return anyWay()
  const [dx, dy] = [gem.x - own.x, gem.y - own.y]
  if (Math.abs(dx) > Math.abs(dy)) return dx > 0 ? 'right' : 'left'
  return dy > 0 ? 'down' : 'up'
}

async function signIn(url: string): Promise<{ token: string; userId: string }> {
  const response = await fetch(`${url}/api/auth/signin/anonymous`, { method: 'POST' })
  if (!response.ok) throw new Error(`no user: ${response.status} ${await response.text()}`)
  const { accessToken, user } = (await response.json()) as { accessToken: string; user: { id: string } }
  return { token: accessToken, userId: user.id }
}

/** Plays until `endsAtMs`, leaves, and gives what the bot is called and has taken. */
async function play(url: string, arena: string, endsAtMs: number): Promise<string> {
  const { token, userId } = await signIn(url)
  let seen: Arena = { players: {}, gems: {} }
  let taken = 0
  const joined = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const room = joinRoom({
    url,
    namespace: 'arena',
    id: arena,
    person: { get: async () => ({ token, renewInMs: tokenMs }), forget() {} },
    onChange(shared: Arena, own: { gems: number }) {
      seen = shared
      taken = own.gems
      joined.resolve()
    },
    onMessage() {},
    onStatus: (status: string) => status === 'left' && left.resolve(),
    onJoined() {},
  })
  await joined.promise
  while (Date.now() < endsAtMs) {
    const to = choose(seen.players[userId], Object.values(seen.gems))
    await Promise.all([room.act('step', { to }).catch(() => {}), sleep(stepMs)])
  }
  const name = seen.players[userId]?.name
  room.leave()
  await left.promise
  return `${name} has taken ${taken}`
}

async function main(): Promise<void> {
  const option = { type: 'string' } as const
  const {
    count = '3',
    seconds = '60',
    arena = 'main',
  } = parseArgs({
    options: { count: option, seconds: option, arena: option },
  }).values
  const url = process.env.PLINTH_URL
  if (!url) throw new Error('Load examples/arena/data/demo.env first.')
  const endsAtMs = Date.now() + Math.min(Number(seconds), secondsMost) * 1000
  const bots = Array.from({ length: Number(count) }, () => play(url, arena, endsAtMs))
  for (const line of await Promise.all(bots)) console.log(line)
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error)
    process.exit(1)
  },
)
