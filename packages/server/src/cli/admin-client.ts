/**
 * Users and keys for the command line, always through the admin endpoints: those of the server that is serving the data
 * folder, or else of one that is opened for the moment, on a free port of this machine alone. So a command does exactly
 * what the API does, and every node hears of it.
 */
import { openApp } from '../app.ts'
import { createLog } from '../base/log.ts'
import { type LoadOptions, load } from '../config/load.ts'
import { EngineError } from '../engines/sql/error.ts'
import type { AdminView, ListedUser, UserPage } from '../features/users/admin/admin.ts'
import type { CreateInput, UpdateInput } from '../features/users/admin/input.ts'
import type { KeyView } from '../features/users/admin/keys.ts'
import { userListLimitMax } from '../limits/users.ts'
import { createAdminCall } from './admin-call.ts'
import type { Terminal } from './command.ts'
import { findAddress } from './served-address.ts'

/** Every function throws `ApiError` for a refusal. */
export interface AdminClient {
  /** `0` is the cursor of the first page. */
  list(cursor: string): Promise<UserPage>
  findByEmail(email: string): Promise<ListedUser | null>
  create(input: CreateInput): Promise<AdminView>
  update(id: string, input: UpdateInput): Promise<AdminView>
  revoke(id: string): Promise<void>
  remove(id: string): Promise<void>
  listKeys(): Promise<readonly KeyView[]>
  rotateKeys(): Promise<KeyView>
  close(): Promise<void>
}

interface Server {
  /** Without a slash at the end. */
  readonly url: string
  readonly serviceKey: string
  close(): Promise<void>
}

/** Finds or opens the server that the options mean. Throws what a start of the server would throw. */
export async function openAdminClient(options: LoadOptions, terminal: Terminal): Promise<AdminClient> {
  return createClient(await openServer(options, terminal))
}

async function openServer(options: LoadOptions, terminal: Terminal): Promise<Server> {
  const { config, settings } = await load(options, 'release')
  const { serviceKey, dataFolder } = settings
  const log = createLog({ level: 'error', format: 'pretty', write: (text) => terminal.error(text.trimEnd()) })
  try {
    const app = await openApp({ config, settings: { ...settings, host: '127.0.0.1', port: 0 }, log })
    return { url: app.url, serviceKey, close: () => app.close() }
  } catch (error) {
    // The one reason for a folder on this machine not to be had: another process has it.
    const isServed = error instanceof EngineError && error.kind === 'unavailable' && settings.databaseUrl === null
    if (!isServed) throw error
    const url = await findAddress(dataFolder)
    const nowhere = `Another process has this data folder and does not say where it is reached. ${later}`
    if (url === null) throw new EngineError('unavailable', nowhere, [], error)
    return { url, serviceKey, close: async () => {} }
  }
}

const later = 'Try again once it is ready, or stop it.'

function createClient({ url, serviceKey, close }: Server): AdminClient {
  const silent = `The server at ${url}, which has this data folder, does not answer. ${later}`
  const ask = createAdminCall({ url, base: '/api/auth/admin', serviceKey, silent })
  const pathOf = (id: string, rest = ''): string => `/users/${encodeURIComponent(id)}${rest}`

  return {
    list: (cursor) => ask('GET', `/users?${new URLSearchParams({ limit: String(userListLimitMax), cursor })}`),
    async findByEmail(email) {
      const { users } = await ask<UserPage>('GET', `/users?${new URLSearchParams({ email })}`)
      return users[0] ?? null
    },
    create: async (input) => (await ask<{ user: AdminView }>('POST', '/users', input)).user,
    update: (id, input) => ask('PATCH', pathOf(id), input),
    revoke: async (id) => void (await ask('POST', pathOf(id, '/revoke'))),
    remove: async (id) => void (await ask('DELETE', pathOf(id))),
    listKeys: async () => (await ask<{ keys: readonly KeyView[] }>('GET', '/keys')).keys,
    rotateKeys: async () => (await ask<{ key: KeyView }>('POST', '/keys/rotate')).key,
    close,
  }
}
