/**
 * Loaded into a server on SQLite before it starts: while the working folder holds a file `kill-at`, the process kills
 * itself once it has written the terms of as many existing rows as the file says, within their transaction.
 */
import { Database } from 'bun:sqlite'
import { readFileSync } from 'node:fs'

const killAt = ((): number => {
  try {
    return Number(readFileSync('kill-at', 'utf8'))
  } catch {
    return 0
  }
})()
let filled = 0

const { prepare } = Database.prototype
Database.prototype.prepare = function (this: Database, text: string) {
  const statement = prepare.call(this, text)
  if (killAt === 0 || !text.startsWith('UPDATE "items" SET "_terms"')) return statement
  const run = statement.run.bind(statement)
  statement.run = (...values: never[]) => {
    const changes = run(...values)
    filled++
    if (filled === killAt) process.kill(process.pid, 'SIGKILL')
    return changes
  }
  return statement
} as typeof prepare
