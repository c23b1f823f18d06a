/** The `before` functions of the application by the table that they are for. */
import type { HookOperation } from '../../before-hooks.ts'
import type { BeforeDefinition, FunctionDefinition } from '../definitions/definition.ts'
import { splitAddress } from '../definitions/hook-target.ts'

/** The hooks of the tables of a namespace. */
export type TableHooks = ReadonlyMap<string, Partial<Readonly<Record<HookOperation, HookList>>>>

/** Hooks in the order in which they run. */
export interface HookList {
  readonly hooks: readonly BeforeDefinition[]
  readonly names: readonly string[]
}

export const hookList = (hooks: readonly BeforeDefinition[]): HookList => ({
  hooks,
  names: hooks.map(({ name }) => name),
})

/** The `before` functions in the order of the modules and their lines. */
export function hooksInOrder(
  definitions: readonly FunctionDefinition[],
  files: readonly string[],
): readonly BeforeDefinition[] {
  // The names of a module's exports are sorted, so their order says nothing.
  const rankOf = ({ location }: BeforeDefinition): number => (location ? files.indexOf(location.file) : -1)
  return definitions
    .filter((one) => one.kind === 'before')
    .toSorted((one, other) => rankOf(one) - rankOf(other) || (one.location?.line ?? 0) - (other.location?.line ?? 0))
}

/** The hooks by namespace. */
export function compileHooks(hooks: readonly BeforeDefinition[]): ReadonlyMap<string, TableHooks> {
  const namespaces = new Map<string, Map<string, Partial<Record<HookOperation, HookList>>>>()
  for (const hook of hooks) {
    const [namespace, table] = splitAddress(hook.table)
    const tables = namespaces.getOrInsertComputed(namespace, () => new Map())
    const of = tables.getOrInsertComputed(table, () => ({}))
    for (const operation of new Set(hook.on)) of[operation] = hookList([...(of[operation]?.hooks ?? []), hook])
  }
  return namespaces
}
