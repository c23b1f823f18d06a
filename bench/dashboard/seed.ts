/** Fills the tables of the dashboard's benchmark by SQL, in the files of a server that is not running. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'

const rowsPerStatement = 50_000
/** Records whose values have a megabyte: some at the start, some in the middle. */
const largeRecords = 100
const largeChars = 1024 * 1024
const wideRows = 10_000

const time = '2026-11-24T09:30:00.000Z'

function fill(db: Database, table: string, rows: number, expressionOf: (name: string, at: number) => string): void {
  const columns = db.query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`).all()
  const names = columns.map(({ name }) => name).filter((name) => name !== '_seq')
  const values = names.map(expressionOf)
  for (let first = 0; first < rows; first += rowsPerStatement) {
    const last = Math.min(rows, first + rowsPerStatement) - 1
    db.run(`WITH RECURSIVE s(n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM s WHERE n < ${last})
      INSERT INTO "${table}" (${names.map((name) => `"${name}"`).join()}) SELECT ${values.join()} FROM s`)
  }
}

const expressionOf = (name: string, at: number): string => {
  if (name === 'id') return `printf('r%08d', n)`
  if (name === '_version') return 'n + 1'
  if (name === 'createdAt' || name === 'updatedAt') return `'${time}'`
  if (name === 'rank') return 'abs(random() % 1000000)'
  if (name === 'text' || name === 'data') return 'NULL'
  return at % 3 === 0 ? 'NULL' : `n || ' of ${name}'`
}

export function fillTables(folder: string, rows: number): void {
  const db = new Database(join(folder, 'databases', 'shared.sqlite'))
  db.run('PRAGMA synchronous = OFF')
  fill(db, 'long', rows, expressionOf)
  fill(db, 'wide', Math.min(rows, wideRows), expressionOf)
  const large = 'x'.repeat(largeChars)
  for (const first of [0, Math.floor(rows / 2)])
    db.query('UPDATE long SET text = ?1, data = ?2 WHERE id >= ?3 AND id < ?4').run(
      large,
      JSON.stringify({ text: large }),
      `r${String(first).padStart(8, '0')}`,
      `r${String(first + largeRecords / 2).padStart(8, '0')}`,
    )
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}
