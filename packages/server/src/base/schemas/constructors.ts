/** The library's functions, of which those that declarations use make lazy schemas. */
import { z } from 'zod'
import { lazily } from './lazy-schema.ts'

export * from 'zod'

export const array = lazily(z.array)
export const boolean = lazily(z.boolean)
export const discriminatedUnion = lazily(z.discriminatedUnion)
export const int = lazily(z.int)
export const iso = { ...z.iso, datetime: lazily(z.iso.datetime) }
export const literal = lazily(z.literal)
export const looseObject = lazily(z.looseObject)
export const number = lazily(z.number)
export const object = lazily(z.object)
export const record = lazily(z.record)
export const strictObject = lazily(z.strictObject)
export const string = lazily(z.string)
export const tuple = lazily(z.tuple)
export const union = lazily(z.union)
export const unknown = lazily(z.unknown)

const enumeration = lazily(z.enum)
const nothing = lazily(z.null)

export { enumeration as enum, nothing as null }
