/**
 * Validation of untrusted statements on PostgreSQL, and translation of their parameters. The role's privileges confine
 * what a statement can access; this rejects what privileges do not cover: transactions, session settings, global locks,
 * and the names of other databases' objects.
 */
import { type SandboxValue, StatementError } from '../sandbox.ts'
import { keywordsOf, parseStatement, wordsOf } from '../statement.ts'
import type { Token } from '../tokenizer.ts'

/** With `$1`, `$2`…, and each value as text. */
export interface PostgresStatement {
  readonly text: string
  readonly values: readonly (string | null)[]
  /** It changes nothing, so it may be committed without checking its result. */
  readonly isRead: boolean
  /** It may create or drop tables or indexes. */
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

/** Keywords followed by a kind of object. */
const withKind: ReadonlySet<string> = new Set(['create', 'alter', 'drop'])
const beforeKind: ReadonlySet<string> = new Set(['or', 'replace', 'unique', 'unlogged', 'recursive', 'materialized'])
/** No kinds with code of their own: a function can build names that are not visible here. */
const kinds: ReadonlySet<string> = new Set(['domain', 'index', 'sequence', 'statistics', 'table', 'type', 'view'])

/**
 * Functions and types by which a statement would run other statements given as text, name foreign objects, have effects
 * beyond its end, or wait for the platform's locks. All system functions begin with `pg_`.
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
/** A reading statement without these words has no effects: functions cannot be created here. */
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
    throw new StatementError('query', 'not allowed: a string with escapes that continues after a line break')
  let parameterIndex = 0
  const text = tokens
    .map(({ kind, text }) => {
      // Surrounding blanks: `$?` would become `$$1`, which begins a string.
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
 * PostgreSQL concatenates strings separated by a line break and applies the escapes of the first to all; split as they
 * are here, the second would end elsewhere.
 */
function isContinued(tokens: readonly Token[]): boolean {
  const solid = tokens.filter(({ kind }) => kind !== 'blank')
  return solid.some(
    ({ kind, text }, at) => kind === 'text' && /^e/i.test(text) && solid[at + 1]?.text.startsWith("'") === true,
  )
}

const isU = (text: string | undefined): boolean => text === 'u' || text === 'U'
