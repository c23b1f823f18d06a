/** Arguments of a POSIX shell. */

/** An argument in quotes. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** An argument, in quotes only where it needs them. */
export const shellArgument = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text))
