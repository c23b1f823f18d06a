/** A table without access restrictions, for tests of behavior that all requests share. */
import { open } from '../config.ts'

export const itemsPath = '/api/db/shared/tables/items'
export const jsonType = { 'content-type': 'application/json' }

export const itemsConfig = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: { title: { type: 'text' }, slug: { type: 'string', unique: true }, tags: { type: 'json' } },
          search: ['title'],
          access: open,
        },
      },
    },
  },
} as const
