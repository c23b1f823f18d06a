/**
 * Connects to PostgreSQL: of several hosts, to the primary. A standby is never used, so that no node reads behind
 * another node's writes.
 */
import pg from 'pg'
import type { DatabaseAddress, DatabaseHost } from '../../base/network/database-url.ts'
import { postgresConnectTimeoutMs } from '../../limits/postgres.ts'
import { EngineError } from '../sql/error.ts'

export interface Connector {
  /** Rejects with the library's error, or with `EngineError` `unavailable` if the server rejects writes. */
  connect(): Promise<pg.Client>
  /** The primary may have changed: the next connection tries every host. */
  forget(): void
  /** Aborts every attempt in progress. */
  abort(): void
}

interface Role {
  readonly standby: boolean
  readonly readonly: boolean
}

const roleQuery = `SELECT pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only') = 'on' AS readonly`

/** Closes a connection in any state, without waiting for the server. */
export function destroyClient(client: pg.Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  stream.destroy()
}

/** `config` applies to every connection; the URL of each host is added to it. */
export function createConnector(address: DatabaseAddress, config: pg.ClientConfig): Connector {
  const { hosts } = address
  const connecting = new Set<pg.Client>()
  let preferred: DatabaseHost | null = hosts.length === 1 ? (hosts[0] as DatabaseHost) : null

  async function connectTo(host: DatabaseHost): Promise<pg.Client> {
    const client = new pg.Client({
      ...config,
      connectionString: host.url,
      connectionTimeoutMillis: postgresConnectTimeoutMs,
    })
    // Without a listener, an error while no reply is awaited would end the process.
    client.on('error', () => undefined)
    connecting.add(client)
    try {
      await client.connect()
      const [role] = (await client.query<Role>(roleQuery)).rows
      if (role?.standby) throw new EngineError('unavailable', `${host.name} is a standby`)
      // A read-only primary still serves reads, if there is no other host.
      if (role?.readonly && hosts.length > 1) throw new EngineError('unavailable', `${host.name} is read-only`)
      return client
    } catch (error) {
      destroyClient(client)
      throw error
    } finally {
      connecting.delete(client)
    }
  }

  /** The first host that accepts writes; connections to the others are closed. */
  async function connectToAny(): Promise<pg.Client> {
    let chosen: pg.Client | null = null
    const attempts = hosts.map(async (host) => {
      const client = await connectTo(host)
      if (chosen) destroyClient(client)
      else {
        chosen = client
        preferred = host
      }
      return client
    })
    try {
      await Promise.any(attempts)
      return chosen as unknown as pg.Client
    } catch (error) {
      const reasons = (error as AggregateError).errors as Error[]
      throw mostSpecific(reasons)
    }
  }

  return {
    async connect() {
      if (preferred === null) return connectToAny()
      try {
        return await connectTo(preferred)
      } catch (error) {
        if (hosts.length === 1) throw error
        preferred = null
        return connectToAny()
      }
    },
    forget() {
      if (hosts.length > 1) preferred = null
    },
    abort() {
      for (const client of connecting) destroyClient(client)
    },
  }
}

/** An error sent by a server is more specific than a timeout. */
const mostSpecific = (errors: readonly Error[]): Error =>
  errors.find((error) => error instanceof pg.DatabaseError) ?? (errors.at(-1) as Error)
