/**
 * The only way to write SQL: a tagged template that turns values into parameters. Identifiers are explicit (`ident`).
 */

export type SqlScalar = string | number | boolean | null

/** Lists are used only through the dialect: not every engine supports array parameters. */
export type SqlValue = SqlScalar | Uint8Array | readonly SqlScalar[]

/**
 * SQL with a `?` per value, in order; adapters for engines with numbered parameters rewrite it. Only this file creates
 * one.
 */
export interface SqlText {
  readonly text: string
  readonly values: readonly SqlValue[]
  /** Whether it selects at most one row, by its id: it is as quick as others of the same text. */
  readonly isLookup?: true
}

const isSqlText = (part: SqlValue | SqlText): part is SqlText =>
  typeof part === 'object' && part !== null && 'text' in part

const noValues: readonly SqlValue[] = []

/**
 * `` sql`SELECT ${ident('id')} FROM t WHERE x = ${value}` ``: values are parameters, `SqlText` parts are spliced in.
 */
export function sql(strings: TemplateStringsArray, ...parts: readonly (SqlValue | SqlText)[]): SqlText {
  let text = strings[0] as string
  // Most texts have one part with values: share its array instead of copying it.
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

/** A quoted identifier. Throws unless it is a plain declared name; identifiers never come from a request. */
export function ident(name: string): SqlText {
  let text = identifiers.get(name)
  if (!text) {
    if (!identifierPattern.test(name)) throw new Error('Not an identifier')
    text = { text: `"${name}"`, values: [] }
    identifiers.set(name, text)
  }
  return text
}

/** Joins parts with a separator; returns the empty text for no parts. */
export function join(parts: readonly SqlText[], separator: ', ' | ' AND ' | ' OR ' | ' + ' | ' UNION ALL '): SqlText {
  const [first] = parts
  if (first && parts.length === 1) return first
  const values: SqlValue[] = []
  for (const part of parts) values.push(...part.values)
  return { text: parts.map((part) => part.text).join(separator), values }
}

/**
 * Placeholder for the instance id of the queried database. Engines that store instances in shared tables bind it; its
 * text is not valid SQL.
 */
export const instanceToken: SqlText = { text: '?instance', values: [] }
