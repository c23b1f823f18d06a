/**
 * Bots: anonymous users that walk towards the nearest gem, under the same rules as players. They use the client, like
 * the page.
 *
 * . examples/arena/data/demo.env
 * node scripts/run.mjs examples/arena/bots.ts [--count 3] [--seconds 60] [--arena main]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { auth, createClient, memoryStorage, rooms } from 'plinth-client'
import type { Arena, Direction } from './game.ts'
import type config from './plinth.config.ts'

/** The rate of a page while a key is pressed. */
const stepMs = 110
/** Share of random steps, so that people can win. */
const randomSteps = 0.4
const secondsMost = 600
const directions = ['up', 'down', 'left', 'right'] as const

interface Position {
  readonly x: number
  readonly y: number
}

const distance = (a: Position, b: Position): number => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)
const randomDirection = (): Direction => directions[Math.floor(Math.random() * directions.length)] as Direction

/** The direction of the nearest gem, ignoring walls; sometimes a random one. */
function choose(own: Position | undefined, gems: readonly Position[]): Direction {
  const [gem] = own ? gems.toSorted((a, b) => distance(own, a) - distance(own, b)) : []
  if (!own || !gem || Math.random() < randomSteps) return randomDirection()
  const [dx, dy] = [gem.x - own.x, gem.y - own.y]
  if (Math.abs(dx) > Math.abs(dy)) return dx > 0 ? 'right' : 'left'
  return dy > 0 ? 'down' : 'up'
}

/** Plays until `endsAtMs` and leaves. Returns the name of the bot and the number of its gems. */
async function play(url: string, arena: string, endsAtMs: number): Promise<string> {
  const plinth = createClient<typeof config>(url, [auth, rooms], { storage: memoryStorage() })
  const { user } = await plinth.auth.signInAnonymously()
  const room = plinth.room('arena', arena)
  await room.join()
  const readArena = (): Arena => room.shared.current
  while (Date.now() < endsAtMs) {
    const { players, gems } = readArena()
    const to = choose(players[user.id], Object.values(gems))
    await Promise.all([room.send('step', { to }).catch(() => undefined), sleep(stepMs)])
  }
  const line = `${readArena().players[user.id]?.name} collected ${room.player.current.gems}`
  await room.leave()
  plinth.close()
  return line
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

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
