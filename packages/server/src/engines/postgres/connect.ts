/**
 * Making a connection to PostgreSQL: of several hosts, to the one that takes writes. A standby is never used, so that
 * no node reads behind what another has written.
 */
import pg from 'pg'
import type { DatabaseAddress, DatabaseHost } from '../../base/network/database-url.ts'
import { postgresConnectTimeoutMs } from '../../limits/postgres.ts'
import { EngineError } from '../sql/error.ts'

export interface Connector {
  /** Rejects with the library's error, or with `EngineError` `unavailable` where the server takes no writes. */
  connect(): Promise<pg.Client>
  /** The server that took writes may do so no longer: the next connection asks every host. */
  forget(): void
  /** Breaks off every attempt under way. */
  abort(): void
}

interface Role {
  readonly standby: boolean
  readonly readonly: boolean
}

const roleQuery = `SELECT pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only') = 'on' AS readonly`

/** Ends a connection whatever state it is in, without waiting for the server. */
export function destroyClient(client: pg.Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  stream.destroy()
}

/** `config` goes to every connection; the URL of each host is added to it. */
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
    // Without a listener an error that comes while no answer is awaited would end the process.
    client.on('error', () => undefined)
    connecting.add(client)
    try {
      await client.connect()
      const [role] = (await client.query<Role>(roleQuery)).rows
      if (role?.standby) throw new EngineError('unavailable', `${host.name} is a standby`)
      // A primary that is set to read-only can still be read, where there is no other.
      if (role?.readonly && hosts.length > 1) throw new EngineError('unavailable', `${host.name} is read-only`)
      return client
    } catch (error) {
      destroyClient(client)
      throw error
    } finally {
      connecting.delete(client)
    }
  }

  /** The first host that takes writes; the connections to others are ended. */
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
      throw mostTelling(reasons)
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

/** What a server said says more than that a host did not answer. */
const mostTelling = (errors: readonly Error[]): Error =>
  errors.find((error) => error instanceof pg.DatabaseError) ?? (errors.at(-1) as Error)
