/** The `before` functions of the application by the table that they are for. */
import type { CodeLocation, Manifest } from '../../../engines/hosts/hosts.ts'
import type { HookOperation } from '../../before-hooks.ts'

export interface DeclaredHook {
  /** The name of the export. */
  readonly name: string
  /** `namespace.table`, or `storage.bucket`. */
  readonly table: string
  readonly on: readonly HookOperation[]
  /** Where it is declared. */
  readonly location: CodeLocation | null
}

/** The hooks of the tables of a namespace, each list in the order in which they run. */
export type TableHooks = ReadonlyMap<string, Partial<Readonly<Record<HookOperation, readonly DeclaredHook[]>>>>

/** The `before` functions of a manifest that has been validated, in the order of the modules and their lines. */
export function declaredHooks({ functions, files }: Manifest): readonly DeclaredHook[] {
  const hooks = functions.filter(({ kind }) => kind === 'before') as unknown as DeclaredHook[]
  // The names of a module's exports are sorted, so their order says nothing.
  const rankOf = ({ location }: DeclaredHook): number => (location ? files.indexOf(location.file) : -1)
  return hooks.toSorted(
    (one, other) => rankOf(one) - rankOf(other) || (one.location?.line ?? 0) - (other.location?.line ?? 0),
  )
}

/** The hooks by namespace. */
export function compileHooks(hooks: readonly DeclaredHook[]): ReadonlyMap<string, TableHooks> {
  const namespaces = new Map<string, Map<string, Partial<Record<HookOperation, DeclaredHook[]>>>>()
  for (const hook of hooks) {
    const [namespace = '', table = ''] = hook.table.split('.', 2)
    const tables = namespaces.getOrInsertComputed(namespace, () => new Map())
    const of = tables.getOrInsertComputed(table, () => ({}))
    for (const operation of new Set(hook.on)) of[operation] = [...(of[operation] ?? []), hook]
  }
  return namespaces
}
