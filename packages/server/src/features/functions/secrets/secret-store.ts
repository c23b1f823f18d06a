/**
 * The secrets that server code declares: values of the environment, and those that `plinth secrets set` stores, sealed
 * under the server's secret. The environment wins.
 */
import type { Clock } from '../../../base/clock.ts'
import { createSealer } from '../../../base/crypto/seal.ts'
import { isSecretName } from '../../../config/sections/functions/secret-name.ts'
import { platformTable, preparePlatformTables } from '../../../engines/sql/platform-tables.ts'
import type { Sql } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { badRequest, invalidField } from '../../../errors.ts'
import { secretsMax, secretValueBytesMax } from '../../../limits/functions.ts'

const namespace = '_functions'
/** Settings of the server, which code must not read by mistake. */
const settingPattern = /^(?:PLINTH_|AWS_|S3_)|^(?:DATABASE|REDIS)_URL$/

export interface ListedSecret {
  readonly name: string
  readonly updatedAt: string
}

export interface SecretStoreDeps {
  readonly sql: Sql
  /** The server's secret. */
  readonly secret: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

export interface SecretStore {
  /** Throws 400 for a name or value that is not valid, or beyond `secretsMax` secrets. */
  set(name: string, value: string): Promise<void>
  /** Whether there was one. */
  remove(name: string): Promise<boolean>
  /** In order of name, without values. */
  list(): Promise<readonly ListedSecret[]>
  /** The values of those names that have one. */
  read(names: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** Throws 400 unless the name can be that of a secret. */
function checkName(name: string): void {
  if (!isSecretName(name)) throw invalidField('name', 'pattern', 'must be letters, digits and underscores')
  if (settingPattern.test(name)) throw invalidField('name', 'pattern', 'is a setting of the server')
}

/** The table is created by the first call that needs it. `environment` is read with every call of `read`. */
export function createSecretStore(deps: SecretStoreDeps): SecretStore {
  const { environment, clock } = deps
  const database = deps.sql.database({ namespace, instanceId: null })
  const { dialect } = database
  const table = dialect.target(platformTable(namespace, 'secrets'))
  const sealer = createSealer(deps.secret, 'function secrets')
  let preparing: Promise<void> | null = null

  const prepare = (): Promise<void> => {
    preparing ??= preparePlatformTables(database, namespace, 'secrets', [
      () => [sql`CREATE TABLE ${table} (name TEXT PRIMARY KEY, sealed TEXT NOT NULL, updated_at BIGINT NOT NULL)`],
    ]).catch((error: unknown) => {
      preparing = null
      throw error
    })
    return preparing
  }

  /** Null for a value that was sealed under another secret of the server: it must be set again. */
  function unsealed(sealed: string, name: string): string | null {
    try {
      return sealer.unseal(sealed, name)
    } catch {
      return null
    }
  }

  async function readStored(names: readonly string[]): Promise<{ name: string; sealed: string }[]> {
    if (names.length === 0) return []
    await prepare()
    return database.all(sql`SELECT name, sealed FROM ${table} WHERE ${dialect.inList(sql`name`, names, 'text')}`)
  }

  return {
    async set(name, value) {
      checkName(name)
      if (value === '') throw invalidField('value', 'min', 'must not be empty')
      if (Buffer.byteLength(value) > secretValueBytesMax)
        throw invalidField('value', 'max', `must have at most ${secretValueBytesMax} bytes`)
      await prepare()
      await database.write(async (tx) => {
        await tx.lock('function secrets')
        const [row] = await tx.all<{ count: unknown }>(
          sql`SELECT count(*) AS count FROM ${table} WHERE name <> ${name}`,
        )
        if (Number(row?.count) >= secretsMax) throw badRequest(`At most ${secretsMax} secrets can be stored`)
        await tx.run(sql`INSERT INTO ${table} (name, sealed, updated_at)
          VALUES (${name}, ${sealer.seal(value, name)}, ${clock.now()})
          ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at`)
      })
    },
    async remove(name) {
      if (!isSecretName(name)) return false
      await prepare()
      return (await database.write((tx) => tx.run(sql`DELETE FROM ${table} WHERE name = ${name}`))) > 0
    },
    async list() {
      await prepare()
      const rows = await database.all<{ name: string; updated_at: unknown }>(
        sql`SELECT name, updated_at FROM ${table} ORDER BY name`,
      )
      return rows.map((row) => ({ name: row.name, updatedAt: new Date(Number(row.updated_at)).toISOString() }))
    },
    async read(names) {
      const found = new Map<string, string>()
      const declared = names.filter((name) => isSecretName(name) && !settingPattern.test(name))
      const rows = await readStored(declared.filter((name) => !environment[name]))
      for (const { name, sealed } of rows) {
        const value = unsealed(sealed, name)
        if (value !== null) found.set(name, value)
      }
      for (const name of declared) if (environment[name]) found.set(name, environment[name])
      return found
    },
  }
}
