/**
 * Moves the travelers of Marie and Omar from place to place, each with the token of its owner. Some steps hide or share
 * a traveler instead.
 *
 * . examples/live/data/demo.env
 * node scripts/run.mjs examples/live/travel.ts [--steps 100] [--every 400]
 */
import { parseArgs } from 'node:util'
import { createClient, records } from 'plinth-client'
import type config from './plinth.config.ts'

/** Every eighth step hides or shares a traveler. */
const stepsPerHiding = 8

const oneOf = <T>(some: readonly T[]): T => some[Math.floor(Math.random() * some.length)] as T

/** The client of a user, with the token in `demo.env`. */
function clientOf(userId: string) {
  const header = process.env[userId.toUpperCase()]
  const { DB } = process.env
  if (!header || !DB) throw new Error('Start the example and run `. examples/live/data/demo.env` first')
  const token = header.replace('Authorization: Bearer ', '')
  const plinth = createClient<typeof config>(new URL(DB).origin, [records], { getToken: () => token })
  return { userId, db: plinth.db() }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { steps: { type: 'string', default: '100' }, every: { type: 'string', default: '400' } },
  })
  const users = [clientOf('marie'), clientOf('omar')] as const
  const places = await Array.fromAsync(users[0].db.places)
  for (let step = 1; step <= Number(values.steps); step++) {
    const { userId, db } = oneOf(users)
    const { items } = await db.travelers.where('userId', '==', userId).list()
    const { id, name, shared } = oneOf(items)
    if (step % stepsPerHiding === 0) {
      await db.travelers.update(id, { shared: !shared })
      console.log(`${name} ${shared ? 'hides' : 'shows up'}`)
    } else {
      const { id: placeId, name: placeName, countryName, region, lat, lng } = oneOf(places)
      await db.travelers.update(id, { placeId, placeName: `${placeName}, ${countryName}`, region, lat, lng })
      console.log(`${name} goes to ${placeName}, ${countryName}`)
    }
    await new Promise((resolve) => setTimeout(resolve, Number(values.every)))
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
