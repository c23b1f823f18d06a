/** PocketBase as a peer: its program on a folder of its own, with collections that are created by its API. */
import { findFreePort, runToEnd, type ServerProcess, startProcess } from '../../scripts/servers/private-server.ts'
import { pinned, serverCore } from './proc.ts'
import type { BaselineProcess } from './processes.ts'

const account = { identity: 'bench@example.com', password: 'bench-password-of-a-temporary-server' }

export interface Collection {
  readonly name: string
  readonly fields: readonly object[]
  readonly indexes?: readonly string[]
  /** Rules of access; without them everyone may read and insert. */
  readonly listRule?: string
  readonly viewRule?: string
  readonly createRule?: string
  readonly updateRule?: string
}

/** Creates a collection; returns its id. */
export type CreateCollection = (collection: Collection) => Promise<string>

export interface PocketBaseOptions {
  readonly program: string
  readonly folder: string
  /** Null for all cores; the core of servers unless given. */
  readonly core?: number | null
  readonly create: (create: CreateCollection) => Promise<void>
  /** Fills the folder while the program is stopped. */
  readonly fill?: () => void
}

const start = (program: string, folder: string, port: number, core: number | null): Promise<ServerProcess> =>
  startProcess({
    command: [
      ...pinned(core),
      program,
      'serve',
      `--dir=${folder}/data`,
      `--hooksDir=${folder}/hooks`,
      `--http=127.0.0.1:${port}`,
    ],
    ready: 'Server started',
  })

async function request<T>(url: string, body: unknown, token = ''): Promise<T> {
  const headers = { 'Content-Type': 'application/json', Authorization: token }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as T
}

async function signIn(url: string): Promise<CreateCollection> {
  const { token } = await request<{ token: string }>(`${url}/api/collections/_superusers/auth-with-password`, account)
  const open = { type: 'base', listRule: '', viewRule: '', createRule: '' }
  return async (collection) =>
    (await request<{ id: string }>(`${url}/api/collections`, { ...open, ...collection }, token)).id
}

/** Starts PocketBase with its collections and rows. Its hooks are in `hooks` of the folder, its data in `data`. */
export async function openPocketBase(options: PocketBaseOptions): Promise<BaselineProcess> {
  const { program, folder, core = serverCore, create, fill } = options
  runToEnd([program, 'superuser', 'upsert', account.identity, account.password, `--dir=${folder}/data`], null)
  const port = findFreePort()
  const empty = await start(program, folder, port, core)
  await create(await signIn(`http://127.0.0.1:${port}`))
  await empty.end('SIGTERM')
  fill?.()
  const server = await start(program, folder, port, core)
  return { pid: server.pid, port, stop: () => server.end('SIGTERM') }
}
