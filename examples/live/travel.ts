/**
 * Moves the travelers of Marie and Omar from place to place, each with the token of its owner. Some steps hide or share
 * a traveler instead.
 *
 * . examples/live/data/demo.env
 * node scripts/run.mjs examples/live/travel.ts [--steps 100] [--every 400]
 */
import { parseArgs } from 'node:util'
import { type Place, whereabouts } from './fill.ts'

interface Traveller {
  readonly id: string
  readonly name: string
  readonly shared: boolean
}

/** Every eighth step hides or shares a traveler. */
const stepsPerHiding = 8

/** Sends a request and returns the JSON of the response. Throws an Error with the message of the server. */
async function request(path: string, authorization: string, change: object | null = null): Promise<unknown> {
  const response = await fetch(`${process.env.DB}/${path}`, {
    method: change ? 'PATCH' : 'GET',
    headers: { Authorization: authorization, 'Content-Type': 'application/json' },
    ...(change && { body: JSON.stringify(change) }),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

async function readAll<T>(table: string, authorization: string): Promise<T[]> {
  const items: T[] = []
  for (let cursor = '', more = true; more; ) {
    const path = `${table}?limit=1000&after=${encodeURIComponent(cursor)}`
    const page = (await request(path, authorization)) as { items: T[]; cursor: string; hasMore: boolean }
    items.push(...page.items)
    more = page.hasMore
    cursor = page.cursor
  }
  return items
}

const oneOf = <T>(some: readonly T[]): T => some[Math.floor(Math.random() * some.length)] as T

/** The token of a user in `demo.env`. */
function tokenOf(userId: string): string {
  const header = process.env[userId.toUpperCase()]
  if (!header || !process.env.DB) throw new Error('Start the example and run `. examples/live/data/demo.env` first')
  return header.replace('Authorization: ', '')
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { steps: { type: 'string', default: '100' }, every: { type: 'string', default: '400' } },
  })
  const tokens = new Map(['marie', 'omar'].map((userId) => [userId, tokenOf(userId)]))
  const places = await readAll<Place>('places', oneOf([...tokens.values()]))
  for (let step = 1; step <= Number(values.steps); step++) {
    const [userId, token] = oneOf([...tokens])
    const own = (await readAll<Traveller & { userId: string }>('travellers', token)).filter(
      (one) => one.userId === userId,
    )
    const { id, name, shared } = oneOf(own)
    if (step % stepsPerHiding === 0) {
      await request(`travellers/${id}`, token, { shared: !shared })
      console.log(`${name} ${shared ? 'hides' : 'shows up'}`)
    } else {
      const there = whereabouts(oneOf(places))
      await request(`travellers/${id}`, token, there)
      console.log(`${name} goes to ${there.placeName}`)
    }
    await new Promise((resolve) => setTimeout(resolve, Number(values.every)))
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
