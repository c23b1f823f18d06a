/**
 * Rules for declared names. They become identifiers in two databases, URL paths and file names, so the strictest of
 * these applies.
 */
import { declaredNameCharsMax } from '../limits/api.ts'
import { builtInFieldNames } from '../query/table.ts'

const namePattern = /^[A-Za-z][A-Za-z0-9_]*$/

/** Names with a meaning on JavaScript objects. */
const objectNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** System columns of SQLite and PostgreSQL. */
const systemColumns: ReadonlySet<string> = new Set(['rowid', 'oid', 'tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax'])

/** System columns of SQLite's full-text index. */
const searchColumns: ReadonlySet<string> = new Set(['rank', 'rowid'])

/** The error in the name of a namespace, table or field, or null. */
export function findNameMistake(name: string): string | null {
  if (objectNames.has(name)) return 'is a reserved name'
  if (name.startsWith('_')) return 'must not start with "_", which marks the platform\'s own names'
  if (name.toLowerCase().startsWith('sqlite')) return 'must not start with "sqlite"'
  if (name.length > declaredNameCharsMax) return `must have at most ${declaredNameCharsMax} characters`
  if (!namePattern.test(name)) return 'must be a letter, then letters, digits and "_"'
  return null
}

/** The same for a field, which also must not collide with built-in fields or system columns. */
export function findFieldNameMistake(name: string): string | null {
  const builtIn = [...builtInFieldNames].find((known) => known.toLowerCase() === name.toLowerCase())
  if (builtIn !== undefined) return `is built in: every record has "${builtIn}"`
  if (systemColumns.has(name.toLowerCase())) return 'is reserved for a system column of the database'
  return findNameMistake(name)
}

/** The error in searching a field of this name, or null. */
export const findSearchNameMistake = (name: string): string | null =>
  searchColumns.has(name.toLowerCase()) ? 'cannot be searched under this name; rename it' : null

/**
 * Pairs of names that differ only in case, the later one first: databases and some file systems treat them as equal.
 */
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
