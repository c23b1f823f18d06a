/**
 * Resolves a request's path and caller to a table with permissions. The only code that decides which namespaces,
 * instances and tables exist and who may address them. Caches what is compiled per configuration.
 */
import type { Caller } from '../../access/caller.ts'
import { type AccessObserver, denied, mayEnter, type Permissions, permissionsOf } from '../../access/check.ts'
import type { NamespaceDefinition, TableDefinition } from '../../access/definition.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import { createMac } from '../../base/crypto/hash.ts'
import type { Log } from '../../base/log.ts'
import { currentTrace } from '../../base/tracing/request-trace.ts'
import { decorateDatabase } from '../../engines/sql/decorate-database.ts'
import type { Dialect } from '../../engines/sql/dialect.ts'
import type { Database, DatabaseAddress, Sql } from '../../engines/sql/sql.ts'
import { invalidField, notFound } from '../../errors.ts'
import { instanceIdCharsMax } from '../../limits/api.ts'
import type { Seal } from '../../query/cursor.ts'
import { isNever } from '../../query/expr.ts'
import type { TableView, ViewRelations } from '../../query/filter.ts'
import { type Relations, relationsOf } from '../../query/relations.ts'
import type { Table } from '../../query/table.ts'
import { createSqlBackEnd, type FindTable, type SqlBackEnd } from '../../query/to-sql.ts'
import { createTableRows, type TableRows } from './rows.ts'
import { tracedPermissions } from './traced-permissions.ts'

export type Namespaces = ReadonlyMap<string, NamespaceDefinition>

/** A field of another table that refers to this one. */
export interface Referrer {
  readonly rows: TableRows
  readonly field: string
}

interface CompiledTable {
  readonly definition: TableDefinition
  readonly rows: TableRows
  readonly referrers: readonly Referrer[]
  /** For callers who see hidden fields, and for those who do not. */
  readonly relations: { readonly all: Relations; readonly visible: Relations }
}

interface CompiledNamespace {
  readonly definition: NamespaceDefinition
  readonly backEnd: SqlBackEnd
  readonly findTable: FindTable
  readonly tables: ReadonlyMap<string, CompiledTable>
}

/** A table resolved for one caller: everything an operation on records needs. */
export interface TableCall {
  readonly table: Table
  /** The fields of stored rows that the caller may use: in filters, sorts and responses. */
  readonly view: TableView
  /** The fields that the caller may use in the body of a write. */
  readonly bodyView: TableView
  readonly rows: TableRows
  readonly referrers: readonly Referrer[]
  readonly backEnd: SqlBackEnd
  readonly database: Database
  readonly address: DatabaseAddress
  readonly caller: Caller
  readonly permissions: Permissions
  readonly seal: Seal
  /** Another table of the same database for the same caller. */
  sibling(tableName: string): TableCall
  /** The same on a decorated database, siblings included. */
  on(database: Database): TableCall
}

export interface Tables {
  /**
   * Without a name any table of the namespace, for what concerns its database. Throws 404 for an undeclared namespace
   * or table, 400 for a malformed instance id, 401/403 if the namespace's rule denies. Returns a promise only if that
   * rule is asynchronous or queries a database. Rules that fail are logged, or given to the observer.
   */
  resolve(
    path: { namespace: string; instanceId: string | null; tableName: string | null },
    caller: Caller,
    observer?: AccessObserver,
  ): TableCall | Promise<TableCall>
}

const instanceIdPattern = new RegExp(`^[A-Za-z0-9_.-]{1,${instanceIdCharsMax}}$`)

/** The first two are special in file systems; with the third, `/api/db/x/tables/tables/y` would be ambiguous. */
const reservedInstanceIds: ReadonlySet<string> = new Set(['.', '..', 'tables'])

/** The scope that a service key needs to read the rows of a table (rule KEY-5). */
export const readScopeOf = (tableName: string | undefined): string => `db:table:${tableName}:read`

function compile(definition: NamespaceDefinition, dialect: Dialect): CompiledNamespace {
  const findTable: FindTable = (name) => {
    const found = definition.tables.get(name)
    if (!found) throw new Error(`There is no table "${name}" in namespace "${definition.name}"`)
    return found.table
  }
  const rows = new Map([...definition.tables].map(([name, { table }]) => [name, createTableRows(table, dialect)]))
  const tables = new Map<string, CompiledTable>()
  for (const [name, one] of definition.tables) {
    const referrers: Referrer[] = []
    for (const other of rows.values())
      for (const field of other.table.fields.values())
        if (field.references === name) referrers.push({ rows: other, field: field.name })
    const all = [...definition.tables.values()].map(({ table }) => table)
    const relations = { all: relationsOf(one.table, all, true), visible: relationsOf(one.table, all, false) }
    tables.set(name, { definition: one, rows: rows.get(name) as TableRows, referrers, relations })
  }
  return { definition, backEnd: createSqlBackEnd(dialect, findTable), findTable, tables }
}

const openRelated = ({ view, permissions }: TableCall): ReturnType<ViewRelations['open']> => ({
  view,
  readable: permissions.read(),
})

/**
 * The database of an instance for one caller. Writes that would create the instance count toward the caller's limit.
 */
const countingInstances = (database: Database, beforeCreate: () => void | Promise<void>): Database =>
  decorateDatabase(database, { write: (work, options) => database.write(work, { ...options, beforeCreate }) })

/** A class, as the view, because one is created per request: closures would take memory of their own. */
class ResolvedTable implements TableCall {
  readonly table: Table
  readonly view: TableView
  readonly bodyView: TableView
  readonly rows: TableRows
  readonly referrers: readonly Referrer[]

  constructor(
    { definition, rows, referrers, relations }: CompiledTable,
    readonly backEnd: SqlBackEnd,
    readonly database: Database,
    readonly address: DatabaseAddress,
    readonly caller: Caller,
    readonly permissions: Permissions,
    readonly seal: Seal,
    private readonly resolve: (tableName: string, database: Database) => TableCall,
  ) {
    const { table } = definition
    const isService = caller.kind === 'service'
    this.table = table
    this.rows = rows
    this.referrers = referrers
    this.bodyView = new CallerView(table, isService, relations, this)
    this.view = isService && isNever(permissions.read()) ? new CallerView(table, false, relations, this) : this.bodyView
  }

  sibling(tableName: string): TableCall {
    return this.resolve(tableName, this.database)
  }

  on(database: Database): TableCall {
    return this.resolve(this.table.name, database)
  }
}

class CallerView implements TableView {
  constructor(
    readonly table: Table,
    readonly showsHidden: boolean,
    private readonly compiled: CompiledTable['relations'],
    private readonly call: TableCall,
  ) {}

  get relations(): ViewRelations {
    const { all, visible } = this.compiled
    return {
      byName: this.showsHidden ? all : visible,
      open: (name) => openRelated(this.call.sibling(name)),
    }
  }
}

export interface TablesDeps {
  readonly sql: Sql
  readonly namespaces: () => Namespaces
  readonly ruleEvaluator: RuleEvaluator
  readonly log: Log
  readonly secret: string
  /** Counts an instance that a caller is about to create; throws or rejects with 429 beyond the limit. */
  readonly countInstance: (caller: Caller) => void | Promise<void>
}

export function createTables(deps: TablesDeps): Tables {
  const { sql, ruleEvaluator, log, countInstance } = deps
  const seal = createMac(deps.secret, 'cursor')
  /** Weak, since a reload replaces the definitions. */
  const compiled = new WeakMap<NamespaceDefinition, CompiledNamespace>()

  function find(name: string, database: Database): CompiledNamespace {
    const definition = deps.namespaces().get(name)
    if (!definition) throw notFound('Table')
    let found = compiled.get(definition)
    if (!found) {
      found = compile(definition, database.dialect)
      compiled.set(definition, found)
    }
    return found
  }

  const report = ({ table, error }: { table: Table; error: unknown }): void =>
    log.error('access.table_rule_failed', { table: `${table.namespace}.${table.name}`, error })

  /** Whether the caller may address the instance. Throws 404 and 400. */
  function mayAddress(
    definition: NamespaceDefinition,
    instanceId: string | null,
    caller: Caller,
    observer: AccessObserver | undefined,
  ): boolean | Promise<boolean> {
    if (definition.instance !== (instanceId !== null)) throw notFound('Table')
    if (instanceId === null) return true
    if (!instanceIdPattern.test(instanceId) || reservedInstanceIds.has(instanceId))
      throw invalidField(
        'instanceId',
        'pattern',
        `must be 1 to ${instanceIdCharsMax} characters of A-Z, a-z, 0-9, _, . and -`,
      )
    const failed = (error: unknown): void =>
      log.error('access.namespace_rule_failed', { namespace: definition.name, error })
    return mayEnter(ruleEvaluator, definition, instanceId, caller, observer ?? { failed })
  }

  function call(
    namespace: CompiledNamespace,
    tableName: string,
    database: Database,
    address: DatabaseAddress,
    caller: Caller,
    observer: AccessObserver | undefined,
  ): TableCall {
    const found = namespace.tables.get(tableName)
    if (!found) throw notFound('Table')
    const { definition } = found
    const reportFailure = observer ? ({ error }: { error: unknown }) => observer.failed(error) : report
    const trace = currentTrace()
    const evaluated = permissionsOf(caller, definition, readScopeOf(tableName), namespace.findTable, reportFailure)
    const permissions = trace ? tracedPermissions(evaluated, tableName, trace) : evaluated
    return new ResolvedTable(found, namespace.backEnd, database, address, caller, permissions, seal, (name, on) =>
      call(namespace, name, on, address, caller, observer),
    )
  }

  return {
    resolve({ namespace: name, instanceId, tableName: wanted }, caller, observer) {
      const definition = deps.namespaces().get(name)
      const tableName = wanted ?? definition?.tables.keys().next().value ?? ''
      if (!definition?.tables.has(tableName)) throw notFound('Table')
      const open = (isAllowed: boolean): TableCall => {
        if (!isAllowed) throw denied(caller)
        const address = { namespace: name, instanceId }
        const found = sql.database(address)
        const database = instanceId === null ? found : countingInstances(found, () => countInstance(caller))
        return call(find(name, database), tableName, database, address, caller, observer)
      }
      const allowed = mayAddress(definition, instanceId, caller, observer)
      return allowed instanceof Promise ? allowed.then(open) : open(allowed)
    },
  }
}
