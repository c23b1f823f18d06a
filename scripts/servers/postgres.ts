/** A private PostgreSQL with default durability. */
import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  makePassword,
  openPrivateServer,
  type PrivateServer,
  type Recipe,
  runToEnd,
  type ServerLocation,
  type User,
} from './private-server.ts'
import type { PostgresPrograms } from './programs.ts'

/** Several test processes and nodes, each with a pool of its own. */
const connectionsMax = 200

/** A user to run PostgreSQL as, which refuses root; null when the process is not root. */
function findUser(): User | null {
  if (process.getuid?.() !== 0) return null
  for (const name of ['postgres', 'nobody']) {
    const ids = ['-u', '-g'].map((flag) => Bun.spawnSync(['id', flag, name]).stdout.toString().trim())
    const [uid, gid] = ids.map((id) => (id === '' ? Number.NaN : Number(id))) as [number, number]
    if (uid > 0) return { uid, gid }
  }
  throw new Error('PostgreSQL does not run as root, and there is no other user to run it as')
}

/** Creates a cluster of databases and starts it. `settings` are of postgresql.conf. Must be removed. */
export async function openPostgres(
  programs: PostgresPrograms,
  settings: Readonly<Record<string, string>> = {},
): Promise<PrivateServer> {
  const user = findUser()
  const password = makePassword()
  const prepare = ({ folder, port }: ServerLocation): Recipe => {
    const data = join(folder, 'data')
    createCluster(programs, data, password, user)
    const options = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      max_connections: String(connectionsMax),
      lc_messages: 'C',
      ...settings,
    }
    const flags = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    return {
      url: `postgres://plinth:${password}@127.0.0.1:${port}/postgres`,
      process: {
        command: [programs.postgres, '-D', data, ...flags],
        ready: 'database system is ready to accept connections',
      },
      // Fast: ends sessions and leaves nothing to recover. Immediate: leaves everything to recover.
      stopSignal: 'SIGINT',
      crashSignal: 'SIGQUIT',
    }
  }
  return openPrivateServer('postgres', prepare, user)
}

/**
 * A hot standby of a server that runs, which follows it until it is promoted; its user and password are the primary's.
 * Must be removed.
 */
export async function openStandby(
  { initdb, postgres }: PostgresPrograms,
  primary: PrivateServer,
): Promise<PrivateServer> {
  const user = findUser()
  const prepare = ({ folder, port }: ServerLocation): Recipe => {
    const data = join(folder, 'data')
    const backup = join(dirname(initdb), 'pg_basebackup')
    runToEnd(
      [backup, `--dbname=${primary.url}`, `--pgdata=${data}`, '--write-recovery-conf', '--checkpoint=fast'],
      user,
    )
    const url = new URL(primary.url)
    url.port = String(port)
    const flags = { listen_addresses: '127.0.0.1', port, unix_socket_directories: '', max_connections: connectionsMax }
    return {
      url: url.href,
      process: {
        command: [
          postgres,
          '-D',
          data,
          ...Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
        ],
        ready: 'database system is ready to accept read-only connections',
      },
      stopSignal: 'SIGINT',
      crashSignal: 'SIGQUIT',
    }
  }
  return openPrivateServer('standby', prepare, user)
}

function createCluster({ initdb }: PostgresPrograms, data: string, password: string, user: User | null): void {
  const passwordFile = join(data, '..', 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (user) chownSync(passwordFile, user.uid, user.gid)
  const create = (locale: string): void =>
    runToEnd(
      [
        initdb,
        `--pgdata=${data}`,
        '--username=plinth',
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        `--locale=${locale}`,
        // There is nothing to lose yet; the server itself syncs.
        '--no-sync',
      ],
      user,
    )
  try {
    create('C.UTF-8')
  } catch {
    // Not every system has that one; the program orders texts by their code points whatever the locale.
    rmSync(data, { recursive: true, force: true })
    create('C')
  }
  rmSync(passwordFile)
}
