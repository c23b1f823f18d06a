/**
 * A process that reads a database through a mapping of its file, row by row, until its input ends: `node mapped-reader
 * PATH`. Prints how many rows it has read in each pass over the table, in one transaction, and exits with 1 on a row
 * that is not as it was written. A failed access to the mapping ends it with SIGBUS.
 */
import { sql } from '../../../src/engines/sql/sql-text.ts'
import { openConnection } from '../../../src/engines/sqlite/connection.ts'

const [path = ''] = process.argv.slice(2)
const connection = openConnection(path, { readonly: true })
connection.exec(`PRAGMA mmap_size = ${1024 * 1024 * 1024}`)

function readAll(): number {
  connection.exec('BEGIN')
  try {
    const ids = connection.all(sql`SELECT id FROM items ORDER BY id`)
    for (const { id } of ids) {
      const [row] = connection.all(sql`SELECT text FROM items WHERE id = ${id as number}`)
      if (row?.text !== `${id} `.repeat(500)) throw new Error(`Row ${id} is damaged`)
    }
    return ids.length
  } finally {
    connection.exec('COMMIT')
  }
}

let isEnding = false
process.stdin.on('end', () => {
  isEnding = true
})
process.stdin.resume()
while (!isEnding) {
  process.stdout.write(`${readAll()}\n`)
  await new Promise((resolve) => setImmediate(resolve))
}
connection.close()
process.exit(0)
