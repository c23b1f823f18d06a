/** A server that is killed while it stores events: acknowledged events are kept, and counted once. */
import { afterEach, expect, test } from 'bun:test'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { track } from '../harness/resources/analytics.ts'

const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

const acknowledged = (sent: readonly { ok: boolean; name: string }[]): string[] =>
  sent.filter(({ ok }) => ok).map(({ name }) => name)

async function trackUntilKilled(server: SpawnedServer): Promise<{ ok: boolean; name: string }[]> {
  const sent: { ok: boolean; name: string }[] = []
  let killing: Promise<void> | null = null
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (!killing) {
        const one = { ok: false, name: `event-${sent.length}` }
        sent.push(one)
        try {
          const { status } = await track(server.service, { name: one.name, userId: 'ann' }, { name: one.name })
          one.ok = status === 200
        } catch {
          return
        }
        if (acknowledged(sent).length >= 300) killing ??= server.kill()
      }
    }),
  )
  await killing
  return sent
}

for (const engine of engines)
  test(`[ANA-KEEP-4] after a crash acknowledged events are stored and counted, and counts match events, on ${engine.name}`, async () => {
    const server = await spawnServer('export default {}', engine)
    opened.push(server.remove)
    const sent = await trackUntilKilled(server)
    await server.start()
    const { body } = await server.service.get('/api/analytics/events?metric=topEvents&limit=1000')
    const counted = new Map<string, unknown>(
      body.topEvents.map((one: { eventName: string; count: number; uniqueUsers: number }) => [
        one.eventName,
        [one.count, one.uniqueUsers],
      ]),
    )
    for (const name of acknowledged(sent)) expect([name, counted.get(name)]).toEqual([name, [2, 1]])
    // An unacknowledged request is stored completely or not at all.
    expect([...counted.values()]).toEqual([...counted].map(() => [2, 1]))
    const { body: total } = await server.service.get('/api/analytics/events?metric=count')
    expect(total).toEqual({ totalEvents: 2 * counted.size, uniqueUsers: 1 })
    const listed = await server.service.get('/api/analytics/events?limit=1000')
    expect(listed.body.events).toHaveLength(2 * counted.size)
    expect(await server.terminate()).toBe(0)
  })
