/**
 * Splits a statement into tokens, enough to find its parameters, its words and its end. Covers both engines' rules for
 * strings, names and comments; grammar is left to the engines. Never throws: an unknown character is a `symbol`.
 */

export type TokenKind =
  /** White space or a comment. */
  | 'blank'
  /** A keyword or a name without quotes. */
  | 'word'
  /** A name in quotes. */
  | 'name'
  | 'text'
  | 'number'
  /** `?` or `?1`. */
  | 'parameter'
  /** `:a`, `@a`, `$a`, `$1`: unsupported parameter syntaxes. */
  | 'other-parameter'
  /** `??`, the escape for PostgreSQL operators that contain `?`. */
  | 'question-mark'
  | 'symbol'

export interface Token {
  readonly kind: TokenKind
  readonly text: string
}

export type TokenRules = 'sqlite' | 'postgres'

/** Sticky, in order of preference. An unterminated token extends to the end, so that no character is scanned twice. */
type Pattern = readonly [kind: TokenKind, pattern: RegExp]

const singleQuoted = /'[^']*(?:''[^']*)*(?:'|$)/y
const doubleQuoted = /"[^"]*(?:""[^"]*)*(?:"|$)/y
const numbered = /\d[\w.]*/y

const patterns: Readonly<Record<TokenRules, readonly Pattern[]>> = {
  sqlite: [
    ['blank', /[ \t\n\f\r\uFEFF]+/y],
    ['blank', /--[^\n]*/y],
    ['blank', /\/\*[\s\S]*?(?:\*\/|$)/y],
    ['text', singleQuoted],
    ['name', doubleQuoted],
    ['name', /`[^`]*(?:``[^`]*)*(?:`|$)/y],
    ['name', /\[[^\]]*(?:\]|$)/y],
    ['parameter', /\?\d*/y],
    ['other-parameter', /[:@$#][\w$\u0080-\uffff]+/y],
    ['number', numbered],
    ['word', /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y],
  ],
  postgres: [
    ['blank', /[ \t\n\f\r\v]+/y],
    // A carriage return ends a comment here, but not in SQLite.
    ['blank', /--[^\n\r]*/y],
    ['text', /[eE]'[^'\\]*(?:(?:''|\\[\s\S])[^'\\]*)*(?:'|\\?$)/y],
    ['text', singleQuoted],
    // Escapes hide the name; the symbol `&` before a name marks one with escapes.
    ['name', doubleQuoted],
    ['question-mark', /\?\?/y],
    ['parameter', /\?\d*/y],
    ['other-parameter', /\$\d+/y],
    ['number', numbered],
    ['word', /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y],
  ],
}

/** The tokens of a query; joined they are the query. Linear time. */
export function tokenize(query: string, rules: TokenRules): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < query.length; ) {
    const token = (rules === 'postgres' ? findNested(query, at) : null) ?? findToken(query, at, patterns[rules])
    tokens.push(token)
    at += token.text.length
  }
  return tokens
}

function findToken(query: string, at: number, candidates: readonly Pattern[]): Token {
  for (const [kind, pattern] of candidates) {
    pattern.lastIndex = at
    const text = pattern.exec(query)?.[0]
    if (text !== undefined && text !== '') return { kind, text }
  }
  return { kind: 'symbol', text: query[at] as string }
}

const dollarQuote = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y
const commentEdge = /\/\*|\*\//g

/** PostgreSQL's nested comments and dollar-quoted strings. */
function findNested(query: string, at: number): Token | null {
  if (query.startsWith('/*', at)) {
    commentEdge.lastIndex = at
    let depth = 0
    for (let edge = commentEdge.exec(query); edge; edge = commentEdge.exec(query)) {
      depth += edge[0] === '/*' ? 1 : -1
      if (depth === 0) return { kind: 'blank', text: query.slice(at, commentEdge.lastIndex) }
    }
    return { kind: 'symbol', text: query.slice(at) }
  }
  dollarQuote.lastIndex = at
  const quote = dollarQuote.exec(query)?.[0]
  if (quote === undefined) return null
  const end = query.indexOf(quote, at + quote.length)
  return end < 0
    ? { kind: 'symbol', text: query.slice(at) }
    : { kind: 'text', text: query.slice(at, end + quote.length) }
}

/** Whether there is nothing to run: only white space, comments and semicolons. */
export const isBlank = (tokens: readonly Token[]): boolean =>
  tokens.every(({ kind, text }) => kind === 'blank' || text === ';')
