/**
 * Authorizer for untrusted statements in SQLite. SQLite calls it for every action while it compiles a statement,
 * including those of views, triggers and foreign keys, so nothing can be hidden by the wording. Everything that is not
 * allowed here is denied.
 */
import { constants } from 'node:sqlite'

/** In SQLite's order: the action, two arguments whose meaning depends on it, the database, the trigger or view. */
export type Action = readonly [
  code: number,
  first: string | null,
  second: string | null,
  database: string | null,
  source: string | null,
]

const {
  SQLITE_ALTER_TABLE,
  SQLITE_ANALYZE,
  SQLITE_ATTACH,
  SQLITE_CREATE_INDEX,
  SQLITE_CREATE_TABLE,
  SQLITE_CREATE_TEMP_INDEX,
  SQLITE_CREATE_TEMP_TABLE,
  SQLITE_CREATE_TEMP_TRIGGER,
  SQLITE_CREATE_TEMP_VIEW,
  SQLITE_CREATE_TRIGGER,
  SQLITE_CREATE_VIEW,
  SQLITE_CREATE_VTABLE,
  SQLITE_DELETE,
  SQLITE_DETACH,
  SQLITE_DROP_INDEX,
  SQLITE_DROP_TABLE,
  SQLITE_DROP_TRIGGER,
  SQLITE_DROP_VIEW,
  SQLITE_DROP_VTABLE,
  SQLITE_FUNCTION,
  SQLITE_INSERT,
  SQLITE_PRAGMA,
  SQLITE_READ,
  SQLITE_RECURSIVE,
  SQLITE_REINDEX,
  SQLITE_SAVEPOINT,
  SQLITE_SELECT,
  SQLITE_TRANSACTION,
  SQLITE_UPDATE,
} = constants

/** Actions confined to the one file. */
const harmless: ReadonlySet<number> = new Set([
  SQLITE_ALTER_TABLE,
  SQLITE_ANALYZE,
  SQLITE_CREATE_INDEX,
  SQLITE_CREATE_TABLE,
  SQLITE_CREATE_TRIGGER,
  SQLITE_CREATE_VIEW,
  SQLITE_DELETE,
  SQLITE_DROP_INDEX,
  SQLITE_DROP_TABLE,
  SQLITE_DROP_TRIGGER,
  SQLITE_DROP_VIEW,
  SQLITE_DROP_VTABLE,
  SQLITE_INSERT,
  SQLITE_READ,
  SQLITE_RECURSIVE,
  SQLITE_REINDEX,
  SQLITE_SELECT,
  SQLITE_UPDATE,
])

/** SQLite modules that store their data in tables of the file. */
const modules: ReadonlySet<string> = new Set(['fts5', 'fts5vocab', 'rtree', 'rtree_i32'])

/** The first loads machine code, the second takes addresses of it. */
const refusedFunctions: ReadonlySet<string> = new Set(['load_extension', 'fts3_tokenizer'])

/** Pragmas that only report on the file, without its path. */
const readOnlyPragmas: ReadonlySet<string> = new Set([
  'collation_list',
  'compile_options',
  'foreign_key_check',
  'foreign_key_list',
  'function_list',
  'index_info',
  'index_list',
  'index_xinfo',
  'integrity_check',
  'module_list',
  'pragma_list',
  'quick_check',
  'table_info',
  'table_list',
  'table_xinfo',
])

/** Pragmas that report without a value, and set one if it is given. */
const readablePragmas: ReadonlySet<string> = new Set([
  'auto_vacuum',
  'data_version',
  'encoding',
  'foreign_keys',
  'freelist_count',
  'journal_mode',
  'max_page_count',
  'page_count',
  'page_size',
  'schema_version',
])

/** Header fields that SQLite does not interpret. */
const ownPragmas: ReadonlySet<string> = new Set(['application_id', 'user_version'])

const named: Readonly<Record<number, string>> = {
  [SQLITE_ATTACH]: 'ATTACH or VACUUM',
  [SQLITE_CREATE_TEMP_INDEX]: 'temporary objects',
  [SQLITE_CREATE_TEMP_TABLE]: 'temporary objects',
  [SQLITE_CREATE_TEMP_TRIGGER]: 'temporary objects',
  [SQLITE_CREATE_TEMP_VIEW]: 'temporary objects',
  [SQLITE_DETACH]: 'DETACH',
}

/** The denied action, in words for the author of the statement; null if it is allowed. */
export function findRefused([code, first, second, database]: Action): string | null {
  // `CREATE TEMP` and `CREATE TABLE temp.t` both insert into a temporary schema, which would live as long as the
  // process.
  if (database === 'temp' && code === SQLITE_INSERT) return 'temporary objects'
  if (harmless.has(code)) return null
  const name = (first ?? '').toLowerCase()
  switch (code) {
    case SQLITE_PRAGMA: {
      const allowed =
        readOnlyPragmas.has(name) || ownPragmas.has(name) || (second === null && readablePragmas.has(name))
      return allowed ? null : `PRAGMA ${name}`
    }
    case SQLITE_FUNCTION:
      return refusedFunctions.has((second ?? '').toLowerCase()) ? `the function ${second}` : null
    case SQLITE_CREATE_VTABLE:
      return modules.has((second ?? '').toLowerCase()) ? null : `a virtual table of ${second}`
    case SQLITE_TRANSACTION:
      return first
    case SQLITE_SAVEPOINT:
      return 'SAVEPOINT'
    default:
      return named[code] ?? 'this'
  }
}
