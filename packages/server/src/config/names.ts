/**
 * Which names may be declared. They become names in two databases, in paths and in files, so the narrowest of these
 * decides.
 */
import { declaredNameCharsMax } from '../limits/api.ts'
import { builtInFieldNames } from '../query/table.ts'

const namePattern = /^[A-Za-z][A-Za-z0-9_]*$/

/** Names that mean something to JavaScript objects. */
const objectNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Columns that SQLite or PostgreSQL give every table by themselves. */
const systemColumns: ReadonlySet<string> = new Set(['rowid', 'oid', 'tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax'])

/** Columns that SQLite's full-text index has by itself. */
const searchColumns: ReadonlySet<string> = new Set(['rank', 'rowid'])

/** What is wrong with the name of a namespace, a table or a field, or null. */
export function findNameMistake(name: string): string | null {
  if (objectNames.has(name)) return 'is a reserved name'
  if (name.startsWith('_')) return 'must not start with "_", which marks the platform\'s own names'
  if (name.toLowerCase().startsWith('sqlite')) return 'must not start with "sqlite"'
  if (name.length > declaredNameCharsMax) return `must have at most ${declaredNameCharsMax} characters`
  if (!namePattern.test(name)) return 'must be a letter, then letters, digits and "_"'
  return null
}

/** The same for a field, which also must not stand for a field or column that is there already. */
export function findFieldNameMistake(name: string): string | null {
  const builtIn = [...builtInFieldNames].find((known) => known.toLowerCase() === name.toLowerCase())
  if (builtIn !== undefined) return `is built in: every record has "${builtIn}"`
  if (systemColumns.has(name.toLowerCase())) return 'is a name that databases give to columns of their own'
  return findNameMistake(name)
}

/** What is wrong with searching a field of this name, or null. */
export const findSearchNameMistake = (name: string): string | null =>
  searchColumns.has(name.toLowerCase()) ? 'cannot be searched under this name; rename it' : null

/** Pairs of names that differ only in case, the later one first: databases and some file systems hold them for one. */
export function findTwins(names: readonly string[]): readonly (readonly [later: string, earlier: string])[] {
  const seen = new Map<string, string>()
  const twins: (readonly [string, string])[] = []
  for (const name of names) {
    const earlier = seen.get(name.toLowerCase())
    if (earlier !== undefined) twins.push([name, earlier])
    else seen.set(name.toLowerCase(), name)
  }
  return twins
}
