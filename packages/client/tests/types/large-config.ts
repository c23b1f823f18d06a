/** A configuration of any number of tables with 21 fields each, and a program that uses all of them. */

const fields = [
  "{ type: 'string', required: true, max: 200 }",
  "{ type: 'text' }",
  "{ type: 'number', default: 0, min: 0 }",
  "{ type: 'boolean', default: false }",
  "{ type: 'datetime' }",
  "{ type: 'json' }",
  "{ type: 'string', enum: ['draft', 'live', 'archived'], default: 'draft' }",
]

const table = (name: string): string => `
        ${name}: {
          schema: {
            ownerId: { type: 'string', required: true },
${Array.from({ length: 20 }, (_, at) => `            field${at}: ${fields[at % fields.length]},`).join('\n')}
          },
          indexes: [{ fields: ['ownerId', 'createdAt'] }],
          search: ['field0', 'field1'],
          hidden: ['field5'],
          access: {
            read: (auth) => (auth ? or({ field3: true }, { ownerId: auth.id }) : { field3: true }),
            insert: owner,
            update: owner,
            delete: (auth) => auth?.role === 'admin' && where('field2', '>', 1),
          },
        },`

const namesOf = (tables: number): string[] => Array.from({ length: tables }, (_, at) => `table${at}`)

/** The text of `plinth.config.ts`. */
export const largeConfig = (tables: number): string => `import { type Auth, defineConfig, or, where } from 'plinth'

const owner = (auth: Auth | null) => auth && { ownerId: auth.id }

export default defineConfig({
  databases: {
    shared: {
      tables: {${namesOf(tables).map(table).join('')}
      },
    },
  },
})
`

const use = (name: string): string => `
export const ${name}Items: { id: string; field0: string }[] = (
  await db.${name}.where('field2', '>', 1).sort('createdAt').select('id', 'field0').list()
).items
export const ${name}Row: { field6: 'draft' | 'live' | 'archived' } = await db.${name}.insert({
  ownerId: 'x', field0: 'x', field7: 'x', field14: 'x',
})
`

/** The text of a program beside the configuration with two uses of each table. */
export const largeConfigUses = (tables: number): string => `import type { Client } from '${clientTypes}'
import type config from './plinth.config'

declare const client: Client<typeof config>
const db = client.db()
${namesOf(tables).map(use).join('')}`

const clientTypes = new URL('../../src/types/client.ts', import.meta.url).pathname
