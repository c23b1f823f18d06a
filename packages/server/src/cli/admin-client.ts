/**
 * The client of the admin endpoints for CLI commands about users and keys. Calls the server that serves the data
 * folder, or else starts a temporary one on a free loopback port. So a command does exactly what the API does, and all
 * nodes are notified.
 */
import { openApp } from '../app.ts'
import { createLog } from '../base/log.ts'
import { type LoadOptions, load } from '../config/load.ts'
import { EngineError } from '../engines/sql/error.ts'
import type { Verification } from '../features/dashboard/audit/reader.ts'
import type { AdminView, ListedUser } from '../features/users/accounts/admin-view.ts'
import type { UserPage } from '../features/users/admin/admin.ts'
import type { CreateInput, UpdateInput } from '../features/users/admin/input.ts'
import type { KeyView } from '../features/users/admin/keys.ts'
import { userListLimitMax } from '../limits/users.ts'
import { createAdminCall } from './admin-call.ts'
import type { Terminal } from './command.ts'
import { findAddress } from './served-address.ts'

/** Functions throw `ApiError` if the server refuses. */
export interface AdminClient {
  /** `0` is the cursor of the first page. */
  list(cursor: string): Promise<UserPage>
  findByEmail(email: string): Promise<ListedUser | null>
  create(input: CreateInput): Promise<AdminView>
  update(id: string, input: UpdateInput): Promise<AdminView>
  revoke(id: string): Promise<void>
  /** Null removes the role. */
  setDashboardRole(id: string, role: string | null): Promise<void>
  remove(id: string): Promise<void>
  listKeys(): Promise<readonly KeyView[]>
  rotateKeys(): Promise<KeyView>
  /** Verifies the audit log; `hash` must be in its chain. */
  verifyAudit(hash: string | null): Promise<Verification>
  close(): Promise<void>
}

interface Server {
  /** Without a slash at the end. */
  readonly url: string
  readonly serviceKey: string
  close(): Promise<void>
}

export interface AdminClientOptions extends LoadOptions {
  /** The last owner of the dashboard may lose access, which no server that is in use permits. */
  readonly mayEndLastOwner?: boolean
}

/** Finds the running server or starts one. Throws what starting a server throws. */
export async function openAdminClient(options: AdminClientOptions, terminal: Terminal): Promise<AdminClient> {
  return createClient(await openServer(options, terminal))
}

async function openServer(
  { mayEndLastOwner = false, ...options }: AdminClientOptions,
  terminal: Terminal,
): Promise<Server> {
  const { config, settings } = await load(options, 'release')
  const { serviceKey, dataFolder } = settings
  const log = createLog({ level: 'error', format: 'pretty', write: (text) => terminal.error(text.trimEnd()) })
  try {
    const app = await openApp({ config, settings: { ...settings, host: '127.0.0.1', port: 0 }, log, mayEndLastOwner })
    return { url: app.url, serviceKey, close: () => app.close() }
  } catch (error) {
    // A data folder on this machine is unavailable only if another process has locked it.
    const isServed = error instanceof EngineError && error.kind === 'unavailable' && settings.databaseUrl === null
    if (!isServed) throw error
    if (mayEndLastOwner)
      throw new EngineError('unavailable', 'Stop the server first: one that runs keeps its last owner.', [], error)
    const url = await findAddress(dataFolder)
    const noAddress = `Another process has this data folder and has not published its address. ${later}`
    if (url === null) throw new EngineError('unavailable', noAddress, [], error)
    return { url, serviceKey, close: async () => {} }
  }
}

const later = 'Try again once it is ready, or stop it.'

function createClient({ url, serviceKey, close }: Server): AdminClient {
  const silent = `The server at ${url}, which has this data folder, does not answer. ${later}`
  const call = createAdminCall({ url, base: '/api/auth/admin', serviceKey, silent })
  const callApi = createAdminCall({ url, base: '/api', serviceKey, silent })
  const pathOf = (id: string, rest = ''): string => `/users/${encodeURIComponent(id)}${rest}`

  return {
    list: (cursor) => call('GET', `/users?${new URLSearchParams({ limit: String(userListLimitMax), cursor })}`),
    async findByEmail(email) {
      const { users } = await call<UserPage>('GET', `/users?${new URLSearchParams({ email })}`)
      return users[0] ?? null
    },
    create: async (input) => (await call<{ user: AdminView }>('POST', '/users', input)).user,
    update: (id, input) => call('PATCH', pathOf(id), input),
    setDashboardRole: async (id, role) => void (await call('PUT', pathOf(id, '/dashboard-role'), { role })),
    revoke: async (id) => void (await call('POST', pathOf(id, '/revoke'))),
    remove: async (id) => void (await call('DELETE', pathOf(id))),
    listKeys: async () => (await call<{ keys: readonly KeyView[] }>('GET', '/keys')).keys,
    rotateKeys: async () => (await call<{ key: KeyView }>('POST', '/keys/rotate')).key,
    verifyAudit: (hash) => callApi('GET', `/audit/verify${hash === null ? '' : `?${new URLSearchParams({ hash })}`}`),
    close,
  }
}
