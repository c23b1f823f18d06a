/** A server that is killed while it writes keys. */
import { describe, expect, test } from 'bun:test'
import { engines } from '../harness/engines.ts'
import { spawnServer } from '../harness/processes/spawn.ts'
import { openStore } from '../harness/resources/kv.ts'

describe('key-value after a crash', () => {
  test.each(engines)('[KV-18] acknowledged writes are kept and refused ones are not, on $name', async (engine) => {
    const server = await spawnServer('export default { kv: { cache: {} } }', engine)
    try {
      const cache = openStore(server.service, 'cache')
      const acknowledged = new Map<string, number>()
      let sent = 0
      let killing: Promise<void> | null = null
      await Promise.all(
        Array.from({ length: 32 }, async () => {
          while (!killing) {
            const n = sent++
            const answer = await cache.set(`k${n % 400}`, n).catch(() => null)
            if (answer === null) return
            expect([200, 429]).toContain(answer.status)
            if (answer.status === 200) acknowledged.set(`k${n % 400}`, n)
            if (acknowledged.size >= 300) killing ??= server.kill()
          }
        }),
      )
      await killing
      await server.start()
      const there = await cache.dump()
      // A key accepts one write a second; an unacknowledged write may or may not have been stored.
      for (const [key, n] of acknowledged) expect(there[key]).toBe(n)
      for (const [key, n] of Object.entries(there)) expect(key).toBe(`k${(n as number) % 400}`)
    } finally {
      await server.remove()
    }
  })
})
