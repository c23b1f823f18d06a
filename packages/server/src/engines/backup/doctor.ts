/**
 * Checks a data folder that no server has open: whether files are missing, whether every database is intact, and
 * whether references resolve. Read-only; the operator decides about findings.
 */
import { type Dirent, existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { doctorFindingsMax } from '../../limits/jobs.ts'
import { isBlobId } from '../blobs/blobs.ts'
import { describeDiskFault } from '../disk/disk-faults.ts'
import { checkFolderFree } from '../disk/folder-lock.ts'
import { findLosses } from '../disk/known-databases.ts'
import { readLogFrames } from '../disk/wal-file.ts'

export interface DatabaseReport {
  /** Relative to the data folder, such as `databases/shared.sqlite`. */
  readonly path: string
  readonly bytes: number
  /** Row count per table; null if a table cannot be read. */
  readonly rows: Readonly<Record<string, number | null>>
}

export interface DoctorReport {
  readonly databases: readonly DatabaseReport[]
  /** Files below `blobs`, and how many are unreferenced (unfinished uploads, for example). */
  readonly blobs: { readonly present: number; readonly unreferenced: number }
  /** One sentence per problem; empty if the folder is intact. */
  readonly problems: readonly string[]
}

export interface DoctorOptions {
  readonly folder: string
  /** Whether files are in an S3 bucket, which is not checked. */
  readonly hasStore: boolean
}

/** Throws `EngineError` `unavailable` while a server has the folder. */
export function examine({ folder, hasStore }: DoctorOptions): DoctorReport {
  checkFolderFree(folder)
  const problems: string[] = []
  for (const label of ['databases', 'sql']) problems.push(...findLosses(join(folder, label), label))
  const databases = databaseFiles(folder).map((path) => examineDatabase(folder, path, problems))
  const blobs = hasStore ? { present: 0, unreferenced: 0 } : examineBlobs(folder, problems)
  return { databases, blobs, problems }
}

/** Of static namespaces, instances and SQL databases. */
const databaseFiles = (folder: string): string[] =>
  ['databases', 'instances', 'sql'].flatMap((name) => {
    const top = join(folder, name)
    if (!existsSync(top)) return []
    return (readdirSync(top, { recursive: true, withFileTypes: true }) as Dirent[])
      .filter((entry) => entry.isFile() && entry.name.endsWith('.sqlite'))
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
      .toSorted()
  })

function examineDatabase(folder: string, path: string, problems: string[]): DatabaseReport {
  const full = join(folder, path)
  const rows: Record<string, number | null> = {}
  const bytes = statSync(full).size
  if (bytes > 0)
    try {
      examineLog(full, path, problems)
      const database = openUnchanged(full)
      try {
        problems.push(...findDamage(database, path))
        Object.assign(rows, countRows(database, path, problems))
        problems.push(...findLogGaps(database, path))
      } finally {
        database.close()
      }
    } catch (error) {
      problems.push(describeFailure(error, path))
    }
  return { path, bytes, rows }
}

/** Opens a database without a log as immutable: otherwise SQLite would create an empty log. */
const openUnchanged = (path: string): DatabaseSync =>
  new DatabaseSync(existsSync(`${path}-wal`) ? path : `${pathToFileURL(path)}?immutable=1`, { readOnly: true })

/** `node:sqlite` has its own error codes; its messages are the ones SQLite reports. */
const describeFailure = (error: unknown, path: string): string =>
  describeDiskFault(error instanceof Error ? new Error(error.message) : error, path)

/** A log with content but without intact frames is damaged. */
function examineLog(full: string, path: string, problems: string[]): void {
  const log = `${full}-wal`
  if (!existsSync(log) || statSync(log).size === 0) return
  // A damaged tail is what a crash leaves of a write that was never acknowledged.
  if (readLogFrames(full).intact === 0) problems.push(`${path}-wal is damaged: none of its frames can be read`)
}

function findDamage(database: DatabaseSync, path: string): string[] {
  const found = database.prepare(`PRAGMA integrity_check(${doctorFindingsMax})`).all() as { integrity_check: string }[]
  return found.filter((row) => row.integrity_check !== 'ok').map((row) => `${path}: ${row.integrity_check}`)
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

function countRows(database: DatabaseSync, path: string, problems: string[]): Record<string, number | null> {
  // Excludes the tables of full-text indexes and virtual tables.
  const tables = database
    .prepare(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
    )
    .all() as { name: string }[]
  return Object.fromEntries(
    tables.map(({ name }) => {
      try {
        const row = database.prepare(`SELECT count(*) AS n FROM ${quoted(name)}`).get() as { n: number }
        return [name, row.n]
      } catch (error) {
        problems.push(`The rows of "${name}" cannot be counted: ${describeFailure(error, path)}`)
        return [name, null]
      }
    }),
  )
}

const hasTable = (database: DatabaseSync, name: string): boolean =>
  database.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`).get(name) !== undefined

/** Changes are numbered without gaps: a gap is a change that subscribers would miss. */
function findLogGaps(database: DatabaseSync, path: string): string[] {
  if (!hasTable(database, '_changes')) return []
  // An entry of several inserts has the number of the last; `after` is the list of their sizes.
  const changes = "CASE WHEN before IS NULL AND after >= '[' AND after < '{' THEN json_array_length(after) ELSE 1 END"
  const gaps = database
    .prepare(
      `SELECT seq, next FROM (SELECT seq, lead(seq - ${changes} + 1) OVER (ORDER BY seq) AS next FROM _changes)
        WHERE next > seq + 1 LIMIT ${doctorFindingsMax}`,
    )
    .all() as { seq: number; next: number }[]
  return gaps.map(({ seq, next }) => `${path}: the change log has a gap between ${seq} and ${next}`)
}

interface Reference {
  readonly id: string
  readonly size: number
  readonly owner: string
}

/** Blobs referenced by objects, image variants and upload parts. */
function readReferences(folder: string): Reference[] {
  const path = join(folder, 'databases', '_storage.sqlite')
  if (!existsSync(path) || statSync(path).size === 0) return []
  const database = openUnchanged(path)
  try {
    if (!hasTable(database, 'objects')) return []
    return database
      .prepare(
        `SELECT json_extract(j.value, '$[0]') AS id, json_extract(j.value, '$[1]') AS size,
            'the file "' || o.key || '" of the bucket "' || o.bucket || '"' AS owner
          FROM objects o, json_each(o.blobs) j
        UNION ALL SELECT blob, size, 'a picture made of a file' FROM derived
        UNION ALL SELECT blob, size, 'a part of an upload' FROM parts`,
      )
      .all() as unknown as Reference[]
  } finally {
    database.close()
  }
}

function examineBlobs(folder: string, problems: string[]): DoctorReport['blobs'] {
  const top = join(folder, 'blobs')
  const pathOf = (id: string): string => join(top, id.slice(-2), id)
  let references: readonly Reference[] = []
  try {
    references = readReferences(folder)
  } catch (error) {
    problems.push(describeFailure(error, 'databases/_storage.sqlite'))
  }
  let missing = 0
  for (const { id, size, owner } of references) {
    const found = isBlobId(id) ? lstatSync(pathOf(id), { throwIfNoEntry: false }) : undefined
    if (found?.isFile() && found.size === size) continue
    missing += 1
    const what = found ? `has ${found.size} bytes instead of ${size}` : 'is missing'
    if (missing <= doctorFindingsMax) problems.push(`blobs: ${id}, which ${owner} refers to, ${what}`)
  }
  if (missing > doctorFindingsMax) problems.push(`blobs: ${missing - doctorFindingsMax} more are missing or truncated`)
  const known = new Set(references.map(({ id }) => id))
  const present = existsSync(top)
    ? (readdirSync(top, { recursive: true, withFileTypes: true }) as Dirent[])
        .filter((entry) => entry.isFile() && isBlobId(entry.name))
        .map(({ name }) => name)
    : []
  return { present: present.length, unreferenced: present.filter((id) => !known.has(id)).length }
}
