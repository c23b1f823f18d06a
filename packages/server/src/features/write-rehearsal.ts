/** Stands in for a transaction while a write is run ahead, to find what hooks have to decide about it. */
import type { Reader, Transaction } from '../engines/sql/sql.ts'
import type { SqlText } from '../engines/sql/sql-text.ts'

/** Reads as a transaction would, and writes nothing. */
export const rehearsalOf = (database: Reader): Transaction => ({
  all: (query) => database.all(query),
  async lockRow<Row>(query: SqlText) {
    const [row] = await database.all<Row>(query)
    return row ?? null
  },
  run: async () => 1,
  send() {},
  append() {},
  async lock() {},
  afterCommit() {},
})
