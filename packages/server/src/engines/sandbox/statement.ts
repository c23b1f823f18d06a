/**
 * Validation common to both engines: a text that can be run, with as many parameters as placeholders. Adapters decide
 * what a statement may do.
 */
import { sqlParamsMax, sqlQueryBytesMax } from '../../limits/resources.ts'
import { type SandboxValue, StatementError } from './sandbox.ts'
import { isBlank, type Token, type TokenRules, tokenize } from './tokenizer.ts'

export interface Statement {
  readonly tokens: readonly Token[]
  /** For each `parameter` token, in order, the number of its parameter, from 1. */
  readonly parameterNumbers: readonly number[]
}

/** Throws `StatementError` for a text or parameters that no engine could run. */
export function parseStatement(query: string, params: readonly SandboxValue[], rules: TokenRules): Statement {
  if (Buffer.byteLength(query) > sqlQueryBytesMax)
    throw new StatementError('query', `must have at most ${sqlQueryBytesMax} bytes`)
  if (!query.isWellFormed() || query.includes('\0')) throw new StatementError('query', 'must be text without NUL')
  const tokens = tokenize(query, rules)
  if (isBlank(tokens)) throw new StatementError('query', 'must be a statement')
  const other = tokens.find(({ kind }) => kind === 'other-parameter')
  if (other) throw new StatementError('query', `${other.text} is not a supported parameter; use ? or ?1`)
  const parameterNumbers = numberParameters(tokens)
  const wanted = Math.max(0, ...parameterNumbers)
  if (wanted > sqlParamsMax) throw new StatementError('query', `must have at most ${sqlParamsMax} parameters`)
  if (wanted !== params.length)
    throw new StatementError('params', `must have ${wanted} ${wanted === 1 ? 'value' : 'values'}, not ${params.length}`)
  return { tokens, parameterNumbers }
}

/** `?` is one more than the largest number before it; `?3` is 3. Throws on `?0`. */
function numberParameters(tokens: readonly Token[]): number[] {
  let largest = 0
  return tokens
    .filter(({ kind }) => kind === 'parameter')
    .map(({ text }) => {
      const number = text === '?' ? largest + 1 : Number(text.slice(1))
      if (number < 1) throw new StatementError('query', 'parameters are numbered from ?1')
      largest = Math.max(largest, number)
      return number
    })
}

/** The statement's words and names in order, lower case, without quotes. */
export const wordsOf = (tokens: readonly Token[]): string[] =>
  tokens.flatMap(({ kind, text }) =>
    kind === 'word' ? [text.toLowerCase()] : kind === 'name' ? [text.slice(1, -1).toLowerCase()] : [],
  )

/** The statement's unquoted words, lower case: its keywords and unquoted names. */
export const keywordsOf = (tokens: readonly Token[]): string[] =>
  tokens.flatMap(({ kind, text }) => (kind === 'word' ? [text.toLowerCase()] : []))
