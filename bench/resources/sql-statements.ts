/** The statements of the SQL bench, the same for the server and for the bare drivers: texts, values, and the rows. */

export const sqlRows = 10_000
export const listRows = 100

/** Runs on both engines. */
export const statements = {
  point: 'SELECT id, title, amount FROM items WHERE id = ?',
  list: `SELECT id, title, amount FROM items WHERE id >= ? ORDER BY id LIMIT ${listRows}`,
  insert: 'INSERT INTO written (title, amount) VALUES (?, ?)',
} as const

export type StatementName = keyof typeof statements

/** Parameters of the request with this index; rows are read in a scattered order. */
export function valuesAt(name: StatementName, index: number): (string | number)[] {
  const row = (index * 7919) % (sqlRows - listRows)
  return name === 'insert' ? [`title ${index}`, index] : [row + 1]
}

/** Creates and fills the tables; `serial` is the engine's type of an auto-incremented id. */
export const seedStatements = (serial: string): readonly string[] => [
  'CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT NOT NULL, amount INTEGER NOT NULL)',
  `CREATE TABLE written (id ${serial} PRIMARY KEY, title TEXT NOT NULL, amount INTEGER NOT NULL)`,
  `INSERT INTO items WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${sqlRows})
    SELECT x, 'title of row ' || x, x * 3 FROM n`,
]
