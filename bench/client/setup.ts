/** The server of the client bench, its rows, and the program that is measured. */
import { join } from 'node:path'
import { authorAt, idAt, rowAt } from '../setup/data.ts'
import { loadCore } from '../setup/proc.ts'
import { type JobProcess, type ServerProcess, serviceKey, startJobs, startServer } from '../setup/processes.ts'
import { calledRows } from './calls.ts'
import { listCount, rowsPerList } from './plan.ts'
import type { ClientJob, ClientResult } from './worker.ts'

export interface ClientSetup {
  readonly server: ServerProcess
  readonly worker: JobProcess<ClientJob, ClientResult>
}

const rowsPerBatch = 500

/** Changes rows of a table, all or none. */
export async function sendBatch(url: string, table: string, body: object): Promise<void> {
  const response = await fetch(`${url}/api/db/shared/tables/${table}/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Platform-Service-Key': serviceKey },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`A batch failed: ${response.status} ${await response.text()}`)
  await response.arrayBuffer()
}

/** The id of a row of a list. */
export const rowId = (list: number, row: number): string => idAt(list * rowsPerList + row)

/** `stack` closes what is opened. The program has the other core. */
export async function openClientSetup(stack: AsyncDisposableStack, work: string): Promise<ClientSetup> {
  const server = await startServer(join(work, 'server'))
  stack.defer(() => server.stop())
  const followed = Array.from({ length: listCount * rowsPerList }, (_, number) => ({
    ...rowAt(number, calledRows),
    authorId: authorAt(Math.floor(number / rowsPerList)),
  }))
  const called = Array.from({ length: calledRows }, (_, number) => rowAt(number, calledRows))
  for (const [table, rows] of [['notes', followed] as const, ['posts', called] as const])
    for (let at = 0; at < rows.length; at += rowsPerBatch)
      await sendBatch(server.url, table, { inserts: rows.slice(at, at + rowsPerBatch) })
  const worker = startJobs<ClientJob, ClientResult>('bench/client/worker.ts', loadCore)
  stack.defer(() => worker.stop())
  return { server, worker }
}
