/** What can be seen from a statement without running it. The server checks and confines every statement itself. */

/** A statement without comments and quoted texts, which could hold any word. */
const bareOf = (statement: string): string =>
  statement.replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'|"(?:[^"]|"")*"/g, ' ')

const reading = /^\s*(?:select|values|explain|show|table|with)\b/i
const writing = /\b(?:insert|update|delete|replace|merge|create|drop|alter|truncate|into)\b/i

/** Whether a statement may change something. Where it is not sure, it may. */
export function mayWrite(statement: string): boolean {
  const bare = bareOf(statement)
  return !reading.test(bare) || writing.test(bare)
}

/** The names that messages of SQLite and PostgreSQL point at. */
const named = [
  /near "(.+?)"/,
  /no such (?:column|table|function): (\S+)/,
  /(?:relation|column|function|table) "?(.+?)"? (?:does not|already) exist/,
]

export interface Position {
  readonly begin: number
  readonly end: number
  /** From 1. */
  readonly line: number
  readonly column: number
}

/** Where a statement has the error of a message; null if the message names nothing that the statement has once. */
export function positionOf(message: string, statement: string): Position | null {
  const name = named.map((pattern) => pattern.exec(message)?.[1]).find((found) => found !== undefined)
  if (name === undefined) return null
  const begin = statement.indexOf(name)
  if (begin < 0 || statement.indexOf(name, begin + 1) >= 0) return null
  const before = statement.slice(0, begin).split('\n')
  return { begin, end: begin + name.length, line: before.length, column: (before.at(-1) ?? '').length + 1 }
}
