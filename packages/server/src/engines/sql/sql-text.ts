/**
 * The only way to write SQL: a tagged template whose values become parameters and whose identifiers must be asked for.
 */

export type SqlScalar = string | number | boolean | null

/** A list only where the dialect asks for one: not every engine has them. */
export type SqlValue = SqlScalar | Uint8Array | readonly SqlScalar[]

/** SQL with `?` for each value in order; adapters whose engine wants `$1` rewrite it. Only this file makes one. */
export interface SqlText {
  readonly text: string
  readonly values: readonly SqlValue[]
}

const isSqlText = (part: SqlValue | SqlText): part is SqlText =>
  typeof part === 'object' && part !== null && 'text' in part

const noValues: readonly SqlValue[] = []

/**
 * `` sql`SELECT ${ident('id')} FROM t WHERE x = ${value}` ``: values are parameters, `SqlText` parts are spliced in.
 */
export function sql(strings: TemplateStringsArray, ...parts: readonly (SqlValue | SqlText)[]): SqlText {
  let text = strings[0] as string
  // Most texts have one part with values: its array is shared instead of copied.
  let values: readonly SqlValue[] = noValues
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as SqlValue | SqlText
    if (isSqlText(part)) {
      text += part.text
      if (part.values.length > 0) values = values.length === 0 ? part.values : [...values, ...part.values]
    } else {
      text += '?'
      values = [...values, part]
    }
    text += strings[i + 1]
  }
  return { text, values }
}

const identifiers = new Map<string, SqlText>()
const identifierPattern = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

/** A quoted identifier. Throws on anything but a plain declared name, which never comes from a request. */
export function ident(name: string): SqlText {
  let text = identifiers.get(name)
  if (!text) {
    if (!identifierPattern.test(name)) throw new Error('Not an identifier')
    text = { text: `"${name}"`, values: [] }
    identifiers.set(name, text)
  }
  return text
}

/** Parts with a separator between them; of no parts, the empty text. */
export function join(parts: readonly SqlText[], separator: ', ' | ' AND ' | ' OR '): SqlText {
  const [first] = parts
  if (first && parts.length === 1) return first
  const values: SqlValue[] = []
  for (const part of parts) values.push(...part.values)
  return { text: parts.map((part) => part.text).join(separator), values }
}

/**
 * Stands for the instance id of the database that is asked. Engines that keep instances in common tables bind it;
 * its text is no valid SQL anywhere else.
 */
export const instanceToken: SqlText = { text: '?instance', values: [] }
