/** Set-up of the subscription bench: an empty server, the clients, and their requests and messages. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { createFirstSigningKey } from '../../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../../packages/server/src/features/users/sessions/tokens.ts'
import { newRowAt } from '../setup/data.ts'
import { loadCore } from '../setup/proc.ts'
import {
  type JobProcess,
  type ServerProcess,
  serviceKey,
  startJobs,
  startServer,
  tokenSecret,
} from '../setup/processes.ts'
import type { LiveJob, OpenJob } from './load.ts'
import type { LiveResult } from './writes.ts'
import { firstId, firstUser, type WriteJob } from './writes.ts'

export type LiveLoad = JobProcess<LiveJob, LiveResult | null>

export interface LiveSetup {
  readonly server: ServerProcess
  readonly load: LiveLoad
}

/** Runs `work` with a server on an empty folder and a client process, and stops both afterwards. */
export async function onSetup<T>(folder: string, work: (setup: LiveSetup) => Promise<T>): Promise<T> {
  const data = join(folder, 'live')
  const server = await startServer(data)
  const load: LiveLoad = startJobs('bench/subscriptions/load.ts', loadCore)
  try {
    return await work({ server, load })
  } finally {
    await load.stop()
    await server.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

/** All callers can read `notes`. In `drafts` users can read published and own rows. */
export type Watched = 'notes' | 'drafts'

const subscribePath = (table: Watched): string => `/api/db/subscribe?namespace=shared&table=${table}`

export const helloTo = (table: Watched): string =>
  JSON.stringify({ type: 'subscribe', channel: `dblive:shared:${table}` })

/** Anonymous sockets, which all receive the same changes. */
export const openAlike = (group: string, port: number, table: Watched, count: number): OpenJob => ({
  do: 'open',
  group,
  port,
  path: subscribePath(table),
  count,
  hellos: [helloTo(table)],
  isCounted: true,
})

/** Authenticated sockets, distributed evenly over the users. */
export async function openSignedIn(group: string, port: number, users: number, count: number): Promise<OpenJob> {
  const tokens = createTokens(createFirstSigningKey(tokenSecret), systemClock)
  const hellos: string[] = []
  for (let user = 0; user < users; user++)
    hellos.push(JSON.stringify({ type: 'auth', token: tokens.signAccess({ id: userAt(user) }) }))
  return { ...openAlike(group, port, 'drafts', count), hellos }
}

const userAt = (number: number): string => `live${firstUser.slice(0, -4)}${String(number).padStart(4, '0')}`

/** The request of a write job. */
export type WriteRequest = Pick<WriteJob, 'port' | 'pid' | 'request' | 'status'>

/** Inserts of one row of about 450 bytes; `own` overrides fields. */
export function writesTo({ port, pid }: ServerProcess, table: Watched, own: object = {}): WriteRequest {
  const body = JSON.stringify({ id: firstId, ...newRowAt(7), authorId: `live${firstUser}`, ...own })
  const head = [
    `POST /api/db/shared/tables/${table} HTTP/1.1`,
    'Host: 127.0.0.1',
    `X-Platform-Service-Key: ${serviceKey}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  return { port, pid, status: 201, request: `${head.join('\r\n')}\r\n\r\n${body}` }
}

/** Requests to the baseline, which publishes a message for each. */
export const publishesTo = ({ port, pid }: { readonly port: number; readonly pid: number }): WriteRequest => ({
  port,
  pid,
  status: 201,
  request: `POST /publish/${firstId} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n`,
})

/** The message sent for a write to `notes`; the baseline sends the same one. */
export async function readMessage({ url }: ServerProcess): Promise<string> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${subscribePath('notes')}`)
  const next = (): Promise<string> =>
    new Promise((resolve, reject) => {
      socket.onmessage = ({ data }) => resolve(String(data))
      socket.onclose = ({ code }) => reject(new Error(`The socket was closed with ${code}`))
    })
  try {
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve()
      socket.onerror = () => reject(new Error('The socket was not opened'))
    })
    const subscribed = next()
    socket.send(helloTo('notes'))
    await subscribed
    const message = next()
    const response = await fetch(`${url}/api/db/shared/tables/notes`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: firstId, ...newRowAt(7), authorId: `live${firstUser}` }),
    })
    await response.arrayBuffer()
    return await message
  } finally {
    socket.onclose = null
    socket.close()
  }
}

/** A gauge of the server's metrics. */
export async function readGauge({ url }: ServerProcess, name: string): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { 'X-Platform-Service-Key': serviceKey } })
  const line = new RegExp(`^\\w*${name}(?:\\{.*\\})? (\\d+)$`, 'm').exec(await response.text())
  if (!line) throw new Error(`The server has no gauge ${name}`)
  return Number(line[1])
}
