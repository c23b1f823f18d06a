/**
 * The database of one instance of a dynamic namespace: a file of its own, and a stand-in until it has one. The first
 * effective write creates the file: it is first rehearsed on the stand-in, so a rejected write creates nothing.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { PageQuery, PageRows } from '../../sql/page-query.ts'
import type { QueryPlan } from '../../sql/query-plan.ts'
import type { ScanOptions } from '../../sql/scan-queue.ts'
import type { Database, WriteOptions } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'
import { sqliteDialect } from '../dialect.ts'
import type { Work } from '../transaction.ts'
import type { InstancePool } from './instance-pool.ts'
import type { StandIns } from './stand-ins.ts'

const plainName = /^[a-z0-9_-]{1,100}$/
const base32 = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * File name of an instance. Ids that a file system might confuse (case, dots, length) become `=` and base 32; `=` is
 * not part of a plain name, so two ids never share a file.
 */
function fileNameOf(instanceId: string): string {
  if (plainName.test(instanceId)) return instanceId
  let bits = 0
  let width = 0
  let text = '='
  for (const byte of Buffer.from(instanceId)) {
    bits = (bits << 8) | byte
    for (width += 8; width >= 5; width -= 5) text += base32[(bits >>> (width - 5)) & 31]
    bits &= (1 << width) - 1
  }
  return width > 0 ? text + base32[(bits << (5 - width)) & 31] : text
}

/** The instance of a file; null for a name that no instance has. */
export function instanceIdOf(fileName: string): string | null {
  if (plainName.test(fileName)) return fileName
  if (!fileName.startsWith('=')) return null
  const bytes: number[] = []
  let bits = 0
  let width = 0
  for (const letter of fileName.slice(1)) {
    const value = base32.indexOf(letter)
    if (value < 0) return null
    bits = (bits << 5) | value
    width += 5
    if (width < 8) continue
    width -= 8
    bytes.push(bits >>> width)
    bits &= (1 << width) - 1
  }
  const instanceId = Buffer.from(bytes).toString()
  return fileNameOf(instanceId) === fileName ? instanceId : null
}

/** `instances/<namespace>/<two hex digits>/<name>.sqlite`: folders stay small with a million instances. */
export function instancePath(folder: string, namespace: string, instanceId: string): string {
  const shard = createHash('sha256').update(instanceId).digest('hex').slice(0, 2)
  return join(folder, 'instances', namespace, shard, `${fileNameOf(instanceId)}.sqlite`)
}

export interface InstanceAddress {
  readonly namespace: string
  readonly instanceId: string
}

/** The data folder's instances. */
export interface InstanceStore {
  readonly folder: string
  readonly pool: InstancePool
  readonly standIns: StandIns
}

export class InstanceDatabase implements Database {
  readonly dialect = sqliteDialect
  readonly readEncodedPage = null
  readonly #address: InstanceAddress
  readonly #path: string
  readonly #pool: InstancePool
  readonly #standIns: StandIns

  constructor(address: InstanceAddress, { folder, pool, standIns }: InstanceStore) {
    this.#address = address
    this.#path = instancePath(folder, address.namespace, address.instanceId)
    this.#pool = pool
    this.#standIns = standIns
  }

  all<Row>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string): Promise<Row[]> {
    return this.#read((database) => database.all<Row>(query, onRead, caller))
  }

  readPage<Row>(query: PageQuery): Promise<PageRows<Row> | null> {
    return this.#read((database) => database.readPage<Row>(query))
  }

  explain(query: SqlText): Promise<QueryPlan> {
    return this.#read((database) => database.explain(query))
  }

  readLargePage<Row>(query: PageQuery, bytesMax: number): Promise<PageRows<Row>> {
    return this.#read((database) => database.readLargePage<Row>(query, bytesMax))
  }

  scan<Row>(query: SqlText, options: ScanOptions): Promise<Row[]> {
    return this.#read((database) => database.scan<Row>(query, options))
  }

  async write<T>(work: Work<T>, options?: WriteOptions): Promise<T> {
    if (!this.#pool.exists(this.#path)) {
      const { result, wrote } = await this.#standIns.rehearse(this.#address.namespace, work)
      if (!wrote || options?.creates === false) return result
      // Concurrent first writes may each call this for the one instance they create.
      await options?.beforeCreate?.()
    }
    return this.#use((database) => database.write(work, options))
  }

  /** An instance is small, and is migrated before it is first used. */
  async buildIndexes(): Promise<void> {}

  synced(): Promise<void> {
    return this.#pool.synced(this.#path)
  }

  /** Reads the stand-in synchronously while the instance has no file, so a first write cannot happen in between. */
  async #read<T>(task: (database: Database) => Promise<T>): Promise<T> {
    if (this.#pool.exists(this.#path)) return this.#use(task)
    const empty = await this.#standIns.forReads(this.#address.namespace)
    return this.#pool.exists(this.#path) ? this.#use(task) : task(empty)
  }

  #use<T>(task: (database: Database) => Promise<T>): Promise<T> {
    return this.#pool.use(this.#path, this.#address, task)
  }
}
