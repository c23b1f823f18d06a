/** Bulk jobs in tests: starting them as the page does, and waiting for their end. */
import type { Answer, Client } from '../client.ts'

/** Below `/dashboard`. */
export const bulkPath = (table: string, instance?: string): string =>
  instance === undefined ? `/api/bulk/shared/tables/${table}` : `/api/bulk/space/${instance}/tables/${table}`

export const bulkStates = ['done', 'failed', 'canceled']

/** The job once it has ended. */
export async function untilEnded(client: Client, path: string, id: string): Promise<Answer['body']> {
  for (;;) {
    const { status, body, text } = await client.get(`${path}/${id}`)
    if (status !== 200) throw new Error(`the job is not found: ${status} ${text}`)
    if (bulkStates.includes(body.state)) return body
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Starts a job and returns it once it has ended. */
export async function runBulk(client: Client, path: string, change: object): Promise<Answer['body']> {
  const { status, body, text } = await client.post(path, change)
  if (status !== 202) throw new Error(`the job did not start: ${status} ${text}`)
  return untilEnded(client, path, body.id)
}
