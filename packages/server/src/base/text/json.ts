/** JSON objects as values of the program, and how large they are. Reading and checking input is `http`'s. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Bytes of a value as JSON in UTF-8, which is how limits on JSON count. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
