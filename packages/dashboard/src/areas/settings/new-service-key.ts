/** A new service key, and the lines that declare it. */

export const keyNamePattern = /^[A-Za-z][\w-]{0,63}$/

const keyBytes = 32

/** 43 random characters that need no quoting in a shell. */
export const newKey = (): string =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(keyBytes))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

/** The variable of the environment that has the key, such as `NIGHT_WORKER_KEY`. */
export const variableOf = (name: string): string => `${name.replaceAll('-', '_').toUpperCase()}_KEY`

export interface KeyDeclaration {
  readonly name: string
  readonly scopes: readonly string[]
  /** A date; null for no expiry. */
  readonly expiresAt: string | null
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

export const declarationOf = ({ name, scopes, expiresAt }: KeyDeclaration): string =>
  [
    '{',
    `  name: ${quoted(name)},`,
    `  key: process.env.${variableOf(name)},`,
    `  scopes: [${scopes.map(quoted).join(', ')}],`,
    ...(expiresAt === null ? [] : [`  expiresAt: ${quoted(`${expiresAt}T00:00:00Z`)},`]),
    '},',
  ].join('\n')
