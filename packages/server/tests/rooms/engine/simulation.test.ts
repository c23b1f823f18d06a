/**
 * Thousands of short lives of a room (`harness/room-life`). PLINTH_ROOM_SEED runs one alone, and says what it does.
 */
import { describe, expect, test } from 'bun:test'
import { RoomLife } from '../../harness/rooms/room-life.ts'

const seedsRun = 2000
const only = Number(process.env.PLINTH_ROOM_SEED ?? Number.NaN)

describe('simulated rooms', () => {
  test('[ROOM-ACT-3, ROOM-SAVE-2, ROOM-DELTA-5, ROOM-NODE-1, ROOM-SEAT-1, ROOM-DELTA-6] after any sequence of failures no action ran twice or was lost, all copies are equal, and owner, seats and versions are consistent', async () => {
    const seeds = Number.isNaN(only) ? Array.from({ length: seedsRun }, (_, at) => at + 1) : [only]
    let acknowledged = 0
    const failures: string[] = []
    for (const seed of seeds) {
      const life = new RoomLife(seed)
      const problems = await life.run()
      acknowledged += life.acknowledged.size
      if (problems.length > 0) failures.push(`seed ${seed}: ${problems.slice(0, 3).join('; ')}`)
      if (!Number.isNaN(only)) process.stderr.write(`${life.log.join('\n')}\n${life.world.logged.join('\n')}\n`)
      if (failures.length >= 5) break
    }
    expect(failures).toEqual([])
    // Schedules in which nothing happens would prove nothing.
    if (Number.isNaN(only)) expect(acknowledged).toBeGreaterThan(seedsRun)
  })
})
