/**
 * Bots: anonymous users that walk towards the nearest gem, under the same rules as players. They use the `room.mjs` of
 * the page.
 *
 * . examples/arena/data/demo.env
 * node scripts/run.mjs examples/arena/bots.ts [--count 3] [--seconds 60] [--arena main]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { joinRoom } from './page/room.mjs'

/** The rate of a page while a key is pressed. */
const stepMs = 110
/** Share of random steps, so that people can win. */
const randomSteps = 0.4
/** Longer than any bot plays, so that no token is renewed. */
const tokenMs = 15 * 60 * 1000
const secondsMost = 600
const directions = ['up', 'down', 'left', 'right'] as const

interface Position {
  readonly x: number
  readonly y: number
}
interface Arena {
  readonly players: Readonly<Record<string, Position & { readonly name: string; readonly score: number }>>
  readonly gems: Readonly<Record<string, Position>>
}

const distance = (a: Position, b: Position): number => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)
const randomDirection = () => directions[Math.floor(Math.random() * directions.length)]

/** The direction of the nearest gem, ignoring walls; sometimes a random one. */
function choose(own: Position | undefined, gems: readonly Position[]): string | undefined {
  const [gem] = own ? gems.toSorted((a, b) => distance(own, a) - distance(own, b)) : []
  if (!own || !gem || Math.random() < randomSteps) return randomDirection()
  const [dx, dy] = [gem.x - own.x, gem.y - own.y]
  if (Math.abs(dx) > Math.abs(dy)) return dx > 0 ? 'right' : 'left'
  return dy > 0 ? 'down' : 'up'
}

async function signIn(url: string): Promise<{ token: string; userId: string }> {
  const response = await fetch(`${url}/api/auth/signin/anonymous`, { method: 'POST' })
  if (!response.ok) throw new Error(`The anonymous sign-in failed: ${response.status} ${await response.text()}`)
  const { accessToken, user } = (await response.json()) as { accessToken: string; user: { id: string } }
  return { token: accessToken, userId: user.id }
}

/** Plays until `endsAtMs` and leaves. Returns the name of the bot and the number of its gems. */
async function play(url: string, arena: string, endsAtMs: number): Promise<string> {
  const { token, userId } = await signIn(url)
  let state: Arena = { players: {}, gems: {} }
  let collected = 0
  const joined = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const room = joinRoom({
    url,
    namespace: 'arena',
    id: arena,
    user: { get: async () => ({ token, renewInMs: tokenMs }), forget() {} },
    onChange(shared: Arena, own: { gems: number }) {
      state = shared
      collected = own.gems
      joined.resolve()
    },
    onMessage() {},
    onStatus: (status: string) => status === 'left' && left.resolve(),
    onJoined() {},
  })
  await joined.promise
  while (Date.now() < endsAtMs) {
    const to = choose(state.players[userId], Object.values(state.gems))
    await Promise.all([room.act('step', { to }).catch(() => {}), sleep(stepMs)])
  }
  const name = state.players[userId]?.name
  room.leave()
  await left.promise
  return `${name} collected ${collected}`
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
