/** Jobs of a node that is suspended for longer than its leases, and then continues. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, sharedEngine } from '../harness/engines.ts'
import { spawnNodes } from '../harness/processes/nodes.ts'
import type { SpawnedServer } from '../harness/processes/spawn.ts'
import { times } from '../harness/times.ts'

const orders = 40
const table = `{ schema: { entry: { type: 'string' } }, access: {} }`
const configText = `export default { databases: { shared: { tables: { orders: ${table}, ledger: ${table} } } } }`

/** Each job writes twice, and waits in between while the file exists. */
const functionsText = (gate: string): string => `import { existsSync } from 'node:fs'
import { functionsFor } from 'plinth/functions'
const { onChange } = functionsFor()
export const keep = onChange('shared.orders', { timeout: '10m' }, async ({ after }, ctx) => {
  const { ledger } = ctx.service.db('shared')
  await ledger.insert({ entry: after.id + ' first' })
  while (existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5))
  await ledger.insert({ entry: after.id + ' second' })
})
`

/** The value of a metric of jobs. */
async function metric({ service }: SpawnedServer, name: string): Promise<number> {
  const { text } = await service.get('/metrics')
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`functions_jobs_${name} `))
      ?.split(' ')[1],
  )
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

const entries = async ({ service }: SpawnedServer): Promise<readonly string[]> =>
  (await service.get('/api/db/shared/tables/ledger?limit=1000&sort=entry:asc')).body.items.map(
    ({ entry }: { entry: string }) => entry,
  )

const jobs = async ({ service }: SpawnedServer): Promise<readonly { status: string; attempt: number }[]> =>
  (await service.get('/api/functions/jobs?queue=keep&limit=200')).body.items

if (sharedEngine)
  describe('jobs of a suspended node', () => {
    test('[FN-JOB-3, FN-EFFECT-1] another node runs them, and what the node does and reports later has no effect', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'plinth-suspended-'))
      const gate = join(folder, 'gate')
      writeFileSync(gate, '')
      const cluster = await spawnNodes(configText, sharedEngine as Engine, 2, {
        files: { 'functions/index.ts': functionsText(gate) },
      })
      const [suspended, other] = cluster.nodes.map(({ server }) => server) as [SpawnedServer, SpawnedServer]
      try {
        // Each node runs 32 jobs of a function at most, so that both have some.
        const inserts = times(orders, (n) => ({ id: `o${n}` }))
        expect((await other.service.post('/api/db/shared/tables/orders/batch', { inserts })).status).toBe(200)
        await until(async () => (await entries(other)).length === orders)
        const abandoned = await metric(suspended, 'running')
        expect(abandoned).toBeGreaterThan(0)
        suspended.pause()
        rmSync(gate)
        await until(async () => (await jobs(other)).every(({ status }) => status === 'done'))
        const repeated = (await jobs(other)).filter(({ attempt }) => attempt > 1)
        expect(repeated).toHaveLength(abandoned)
        suspended.resume()
        await until(async () => (await metric(suspended, 'total{outcome="lost"}')) === abandoned)
        expect(await metric(suspended, 'total{outcome="done"}')).toBe(0)
        const expected = inserts.flatMap(({ id }) => [`${id} first`, `${id} second`]).sort()
        expect([...(await entries(other))].sort()).toEqual(expected)
      } finally {
        suspended.resume()
        await cluster.remove()
        rmSync(folder, { recursive: true, force: true })
      }
    }, 300_000)
  })
