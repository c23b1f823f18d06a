/** Which names an undeclared field of a schemaless table may have. */
import { fieldNameCharsMax } from '../limits/api.ts'
import { builtInFieldNames } from './table.ts'

/** Names that mean something to JavaScript objects; refused everywhere so that no code has to be careful. */
const reservedNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Control, format, surrogate, private and separator characters other than the plain space. */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u

/** What is wrong with the name, or null: 1–128 printable characters, none of the reserved names. */
export function findUndeclaredNameMistake(name: string): string | null {
  if (name.length === 0 || name.length > fieldNameCharsMax) return `must have 1 to ${fieldNameCharsMax} characters`
  if (reservedNames.has(name)) return 'is a reserved name'
  if (builtInFieldNames.has(name)) return null
  return unprintable.test(name) ? 'must be printable' : null
}
