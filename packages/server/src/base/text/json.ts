/** JSON objects and their size. `http` parses and validates input. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value is an object: neither a list nor null. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Bytes of a value as JSON in UTF-8, the unit of limits on JSON. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
