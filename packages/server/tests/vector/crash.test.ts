/** A vector index whose server is killed during writes. */
import { afterEach, expect, test } from 'bun:test'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { createNumbers, makeValues, perform } from '../harness/resources/vector.ts'

let spawned: SpawnedServer | null = null
afterEach(() => spawned?.remove())

test('[VEC-22] a server that is killed during writes keeps every acknowledged vector', async () => {
  const config = `export default { vector: { docs: { dimensions: 8, metric: 'euclidean' } } }`
  const server = await spawnServer(config, engines[0])
  spawned = server
  const next = createNumbers(3)
  const written = new Map<string, number[]>()
  let killing: Promise<void> | null = null
  const write = async (writer: number): Promise<void> => {
    for (let at = 0; !killing; at++) {
      const batch = [0, 1, 2].map((one) => ({ id: `${writer}-${at}-${one}`, values: makeValues(next, 8) }))
      try {
        const { status } = await perform(server.service, 'docs', 'insert', { vectors: batch })
        if (status === 200) for (const { id, values } of batch) written.set(id, values)
      } catch {
        return
      }
      if (written.size > 600) killing ??= server.kill()
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, writer) => write(writer)))
  await killing
  await server.start()
  const { vectorCount } = (await perform(server.service, 'docs', 'describe')).body
  // Each batch of three is stored completely or not at all.
  expect(vectorCount % 3).toBe(0)
  expect(vectorCount).toBeGreaterThanOrEqual(written.size)
  const some = [...written].filter((_, at) => at % 20 === 0)
  expect(some.length).toBeGreaterThan(20)
  for (const [id, values] of some) {
    const { body } = await perform(server.service, 'docs', 'search', { vector: values, topK: 1, returnValues: true })
    expect(body.matches).toEqual([{ id, score: 0, values }])
  }
})
