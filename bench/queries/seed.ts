/** Seeds the server through its batch endpoint. */
import { type ServerProcess, serviceKey } from '../setup/processes.ts'
import { type Counts, rowsOf } from './data.ts'

const batchRows = 500
/** Enough that the server always has a batch waiting. */
const batchesInFlight = 4

async function insert(server: ServerProcess, table: string, inserts: readonly object[]): Promise<void> {
  const response = await fetch(`${server.url}/api/db/shared/tables/${table}/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Platform-Service-Key': serviceKey },
    body: JSON.stringify({ inserts }),
  })
  if (!response.ok) throw new Error(`Seeding ${table} failed: ${response.status} ${await response.text()}`)
  await response.arrayBuffer()
}

export async function seedServer(server: ServerProcess, counts: Counts): Promise<void> {
  for (const [table, { count, at }] of Object.entries(rowsOf(counts))) {
    let next = 0
    const work = async (): Promise<void> => {
      while (next < count) {
        const first = next
        next += batchRows
        const length = Math.min(batchRows, count - first)
        await insert(
          server,
          table,
          Array.from({ length }, (_, row) => at(first + row)),
        )
      }
    }
    await Promise.all(Array.from({ length: batchesInFlight }, work))
  }
}
