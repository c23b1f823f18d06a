/**
 * What a stranger's statement may be on PostgreSQL, and how its parameters are written there. What it may reach is the
 * role's rights; this refuses what rights say nothing of: transactions, settings of the session, locks that everybody
 * shares, and the names of what others have.
 */
import { type SandboxValue, StatementError } from './sandbox.ts'
import { keywordsOf, parseStatement, wordsOf } from './statement.ts'
import type { Token } from './tokenizer.ts'

/** With `$1`, `$2`… and each value as text. */
export interface PostgresStatement {
  readonly text: string
  readonly values: readonly (string | null)[]
  /** It changes nothing, so it may be kept without a look at what it gave. */
  readonly isRead: boolean
  /** It may make or drop tables or indexes. */
  readonly makesTables: boolean
}

const plain: ReadonlySet<string> = new Set([
  'analyze',
  'comment',
  'delete',
  'explain',
  'insert',
  'merge',
  'refresh',
  'reindex',
  'select',
  'table',
  'truncate',
  'update',
  'values',
  'with',
])

/** These make, change and drop things of many kinds. */
const withKind: ReadonlySet<string> = new Set(['create', 'alter', 'drop'])
const beforeKind: ReadonlySet<string> = new Set(['or', 'replace', 'unique', 'unlogged', 'recursive', 'materialized'])
/** Nothing that runs code of its own: in a function, names can be put together that are nowhere to be seen here. */
const kinds: ReadonlySet<string> = new Set(['domain', 'index', 'sequence', 'statistics', 'table', 'type', 'view'])

/**
 * Functions and types by which a statement would run other statements given as text, name what is not its own, keep
 * something beyond its end, or wait for locks of the platform. Everything of the system's begins with `pg_`.
 */
const refusedWord = new RegExp(
  [
    '^pg_|^lo_|^dblink|^crosstab|^connectby$|^xpath_table$',
    '_to_xml(?:schema|_and_xmlschema)?$',
    '^(?:set_config|ts_stat|ts_rewrite)$',
    // With `_` before them, arrays of these types.
    '^(?:to_|_)?reg(?:class|collation|config|dictionary|namespace|oper|operator|proc|procedure|role|type)$',
  ].join('|'),
)
const allowedWords: ReadonlySet<string> = new Set([
  'pg_column_size',
  'pg_get_serial_sequence',
  'pg_size_pretty',
  'pg_sleep',
  'pg_typeof',
])

const reading: ReadonlySet<string> = new Set(['select', 'table', 'values', 'with'])
/** A statement that reads, and has none of these words, does nothing else: functions cannot be made here. */
const writing: ReadonlySet<string> = new Set(['delete', 'insert', 'into', 'merge', 'update'])

/** Throws `StatementError`. */
export function translate(query: string, params: readonly SandboxValue[]): PostgresStatement {
  const { tokens, parameterNumbers } = parseStatement(query, params, 'postgres')
  const words = keywordsOf(tokens)
  const [first = ''] = words
  const kind = words.slice(1).find((word) => !beforeKind.has(word)) ?? ''
  if (!plain.has(first) && !(withKind.has(first) && kinds.has(kind)))
    throw new StatementError('query', `not allowed: ${withKind.has(first) ? `${first} ${kind}` : first}`.trimEnd())
  const refused = wordsOf(tokens).find((word) => refusedWord.test(word) && !allowedWords.has(word))
  if (refused !== undefined) throw new StatementError('query', `not allowed: ${refused}`)
  if (tokens.some(({ text }, at) => text === '&' && tokens[at + 1]?.kind === 'name' && isU(tokens[at - 1]?.text)))
    throw new StatementError('query', 'not allowed: names with Unicode escapes')
  if (isContinued(tokens))
    throw new StatementError('query', 'not allowed: a text with escapes that goes on after a line break')
  let parameterIndex = 0
  const text = tokens
    .map(({ kind, text }) => {
      // The blanks keep it apart: `$?` would become `$$1`, which begins a text.
      if (kind === 'parameter') return ` $${parameterNumbers[parameterIndex++]} `
      return kind === 'question-mark' ? '?' : text
    })
    .join('')
  return {
    text,
    values: params.map((value) => (value === null ? null : String(value))),
    isRead: reading.has(first) && !words.some((word) => writing.has(word)),
    makesTables: withKind.has(first) || (reading.has(first) && words.includes('into')),
  }
}

/**
 * PostgreSQL takes a text that follows another after a line break for more of the same, and reads its backslashes as
 * the first one's; cut apart as they are here, the second would end elsewhere.
 */
function isContinued(tokens: readonly Token[]): boolean {
  const solid = tokens.filter(({ kind }) => kind !== 'blank')
  return solid.some(
    ({ kind, text }, at) => kind === 'text' && /^e/i.test(text) && solid[at + 1]?.text.startsWith("'") === true,
  )
}

const isU = (text: string | undefined): boolean => text === 'u' || text === 'U'
