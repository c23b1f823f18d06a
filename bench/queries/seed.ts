/** Seeds the server through its batch endpoint. */
import type { ServerProcess } from '../setup/processes.ts'
import { insertBatch } from '../setup/seed.ts'
import { type Counts, rowsOf } from './data.ts'

const batchRows = 500
/** Enough that the server always has a batch waiting. */
const batchesInFlight = 4

export async function seedServer(server: ServerProcess, counts: Counts): Promise<void> {
  for (const [table, { count, at }] of Object.entries(rowsOf(counts))) {
    let next = 0
    const work = async (): Promise<void> => {
      while (next < count) {
        const first = next
        next += batchRows
        const length = Math.min(batchRows, count - first)
        await insertBatch(
          server.url,
          table,
          Array.from({ length }, (_, row) => at(first + row)),
        )
      }
    }
    await Promise.all(Array.from({ length: batchesInFlight }, work))
  }
}
