/** SIGHUP reloads the configuration of a server in release mode. */
import { afterEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'

const configOf = (...tables: readonly string[]): string =>
  `export default { databases: { shared: { tables: { ${tables.map((name) => `${name}: { access: { read: true } }`).join()} } } } }`

let server: SpawnedServer | null = null
afterEach(async () => {
  await server?.remove()
  server = null
})

test('[SYS-17] SIGHUP reloads a valid configuration and ignores an invalid one', async () => {
  const running = await spawnServer(configOf('first'), engines[0])
  server = running
  const path = join(dirname(running.dataFolder), 'plinth.config.ts')
  const status = async (table: string): Promise<number> =>
    (await running.service.get(`/api/db/shared/tables/${table}`)).status
  const reload = (text: string): void => {
    writeFileSync(path, text)
    process.kill(running.pid, 'SIGHUP')
  }
  expect({ first: await status('first'), second: await status('second') }).toEqual({ first: 200, second: 404 })
  reload(configOf('first', 'second'))
  while ((await status('second')) !== 200);
  const { pid } = running
  reload('export default { databases: 7 }')
  expect({ first: await status('first'), second: await status('second') }).toEqual({ first: 200, second: 200 })
  reload(configOf('second', 'third'))
  while ((await status('third')) !== 200);
  expect({ first: await status('first'), second: await status('second') }).toEqual({ first: 404, second: 200 })
  expect(running.pid).toBe(pid)
})
