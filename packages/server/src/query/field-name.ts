/** Which names an undeclared field of a schemaless table may have. */
import { fieldNameCharsMax } from '../limits/api.ts'
import { builtInFieldNames } from './table.ts'

/** Names with a special meaning in JavaScript objects; rejected everywhere, so that no code has to handle them. */
const reservedNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Control, format, surrogate, private-use and separator characters other than the space. */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u

/** Why the name is invalid, or null: it must have 1–128 printable characters and not be reserved. */
export function findUndeclaredNameError(name: string): string | null {
  if (name.length === 0 || name.length > fieldNameCharsMax) return `must have 1 to ${fieldNameCharsMax} characters`
  if (reservedNames.has(name)) return 'is a reserved name'
  if (builtInFieldNames.has(name)) return null
  return unprintable.test(name) ? 'must have printable characters only' : null
}
