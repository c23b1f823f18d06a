/** JSON objects and their size. `http` parses and validates input. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Bytes of a value as JSON in UTF-8, the unit of limits on JSON. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
