/** Data folders with as many tenants as a run needs. */
import { linkSync, mkdirSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { silentLog } from '../../packages/server/src/base/log.ts'
import { openSql } from '../../packages/server/src/engines/open.ts'
import type { DatabaseAddress } from '../../packages/server/src/engines/sql/sql.ts'
import { instancePath } from '../../packages/server/src/engines/sqlite/instances/instance-database.ts'
import { createPositions } from '../../packages/server/src/features/functions/dispatch/positions.ts'
import { prepareJobTables } from '../../packages/server/src/features/functions/jobs/migrations.ts'
import { serviceKey, startServer } from '../setup/processes.ts'

const first: DatabaseAddress = { namespace: 'workspace', instanceId: 'first' }
/** File systems allow a bounded number of names for one file. */
const linksMax = 50_000

const addressOf = (at: number): DatabaseAddress & { readonly instanceId: string } => ({
  namespace: first.namespace,
  instanceId: `tenant-${at}`,
})

/** A folder that has served one tenant. */
export async function seedFolder(folder: string, config: string): Promise<void> {
  const server = await startServer(folder, null, config)
  const response = await fetch(`${server.url}/api/db/${first.namespace}/${first.instanceId}/tables/notes`, {
    method: 'POST',
    headers: { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' },
    body: JSON.stringify({ title: 'first' }),
  })
  await server.stop()
  if (response.status !== 201) throw new Error(`The first tenant was refused: ${await response.text()}`)
}

/** Adds tenants that are copies of the first one. */
export async function addTenants(folder: string, count: number): Promise<void> {
  const source = instancePath(folder, first.namespace, 'first')
  let linked = source
  for (let at = 0; at < count; at++) {
    const path = instancePath(folder, first.namespace, addressOf(at).instanceId)
    mkdirSync(dirname(path), { recursive: true })
    if (at % linksMax === 0) {
      await copyFile(source, path)
      linked = path
    } else linkSync(linked, path)
  }
}

/** Marks the tenants as a server leaves them that is killed within seconds of writing to each. */
export async function markTenants(folder: string, count: number): Promise<void> {
  const options = { databaseUrl: null, dataFolder: folder, prepareInstance: async () => {}, log: silentLog }
  const sql = await openSql(options)
  try {
    const tables = await prepareJobTables(sql)
    const positions = createPositions(tables, { holder: 'killed', isSole: true, clock: systemClock })
    const stored = await positions.find(first)
    if (!stored) throw new Error('The first tenant has no position')
    for (let at = 0; at < count; at += 1000)
      await Promise.all(
        Array.from({ length: Math.min(1000, count - at) }, (_, more) =>
          positions.ensure(addressOf(at + more), async () => stored.position),
        ),
      )
  } finally {
    await sql.close()
  }
}
