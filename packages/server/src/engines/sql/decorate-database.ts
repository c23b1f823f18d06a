/** Decorators of the port `Database`. Adapters are classes, which object spread would strip of their methods. */
import type { Database } from './sql.ts'

/** The same database with some of its methods replaced. */
export const decorateDatabase = (database: Database, replaced: Partial<Omit<Database, 'dialect'>>): Database => ({
  dialect: database.dialect,
  all: (query, onRead, caller) => database.all(query, onRead, caller),
  readPage: (query) => database.readPage(query),
  readEncodedPage: database.readEncodedPage,
  readLargePage: (query, bytesMax) => database.readLargePage(query, bytesMax),
  explain: (query) => database.explain(query),
  scan: (query, options) => database.scan(query, options),
  write: (work, options) => database.write(work, options),
  buildIndexes: (statements) => database.buildIndexes(statements),
  synced: () => database.synced(),
  ...replaced,
})
