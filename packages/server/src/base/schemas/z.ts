/** `z` of zod with lazy schemas, for declarations that most processes never use. */
export * as z from './constructors.ts'
