/** A table with a field of every type, for tests of queries. */
import { open } from '../config.ts'

export const thingsPath = '/api/db/shared/tables/things'

/** Every type except text, and a hidden field that only service keys can read. */
export const thingFields = {
  name: { type: 'string' },
  rank: { type: 'number' },
  done: { type: 'boolean' },
  due: { type: 'datetime' },
  extra: { type: 'json' },
  secret: { type: 'string' },
} as const

/** The table, with additional fields. */
export const thingsWith = <const Fields extends object>(fields: Fields) =>
  ({ schema: { ...thingFields, ...fields }, hidden: ['secret'], search: ['name'], access: open }) as const
