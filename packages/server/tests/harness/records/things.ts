/** A table with a field of every kind, for tests of what is asked for in a query. */
import { open } from '../config.ts'

export const thingsPath = '/api/db/shared/tables/things'

/** Of every type but text, and one that only the service key knows of. */
export const thingFields = {
  name: { type: 'string' },
  rank: { type: 'number' },
  done: { type: 'boolean' },
  due: { type: 'datetime' },
  extra: { type: 'json' },
  secret: { type: 'string' },
} as const

/** The table, with further fields. */
export const thingsWith = <const Fields extends object>(fields: Fields) =>
  ({ schema: { ...thingFields, ...fields }, hidden: ['secret'], search: ['name'], access: open }) as const
