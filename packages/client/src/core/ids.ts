/** Identifiers that have to be unique, and need not be secret. */

/** A UUID of version 4. Of `crypto` where there is one, which is missing in Hermes and in pages without TLS. */
export const randomId = (): string =>
  globalThis.crypto?.randomUUID?.() ??
  'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => ((Math.random() * 16) | 0).toString(16))
