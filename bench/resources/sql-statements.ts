/** The statements of the SQL bench, the same for the server and for the bare drivers: texts, values, and the rows. */

export const sqlRows = 10_000
export const listRows = 100

/** Runs on both engines; `$` is how the engine writes the n-th parameter. */
export const statements = {
  point: 'SELECT id, title, amount FROM items WHERE id = ?',
  list: `SELECT id, title, amount FROM items WHERE id >= ? ORDER BY id LIMIT ${listRows}`,
  insert: 'INSERT INTO written (title, amount) VALUES (?, ?)',
} as const

export type StatementName = keyof typeof statements

/** Values of a statement's turn; rows are asked for in an order without a pattern. */
export function valuesAt(name: StatementName, index: number): (string | number)[] {
  const place = (index * 7919) % (sqlRows - listRows)
  return name === 'insert' ? [`title ${index}`, index] : [place + 1]
}

/** Makes and fills the tables; `serial` is the engine's type of an id it numbers itself. */
export const seedStatements = (serial: string): readonly string[] => [
  'CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT NOT NULL, amount INTEGER NOT NULL)',
  `CREATE TABLE written (id ${serial} PRIMARY KEY, title TEXT NOT NULL, amount INTEGER NOT NULL)`,
  `INSERT INTO items WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${sqlRows})
    SELECT x, 'title of row ' || x, x * 3 FROM n`,
]
