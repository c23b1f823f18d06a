/** Identifiers that have to be unique, and need not be secret. */

/** A random text. `crypto` is missing in Hermes, and `randomUUID` in pages without TLS. */
export const randomId = (): string =>
  globalThis.crypto?.randomUUID?.() ?? `${Math.random()}${Math.random()}${Date.now()}`.replace(/\./g, '')
