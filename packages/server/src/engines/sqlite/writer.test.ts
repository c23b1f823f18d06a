import { expect, test } from 'bun:test'
import { sql } from '../sql/sql-text.ts'
import { openConnection } from './connection.ts'
import { Writer } from './writer.ts'

/** Runs each list of names in a round of the event loop of its own; how many groups they were committed in. */
async function groupsOf(rounds: readonly (readonly string[])[], elapsedMs: () => number): Promise<number> {
  const connection = openConnection(':memory:')
  connection.exec('CREATE TABLE items (id TEXT NOT NULL UNIQUE)')
  let groups = 0
  const onGroup = (): undefined => {
    groups += 1
  }
  const writer = new Writer({ connection, sync: async () => {}, onGroup, elapsedMs })
  const writes: Promise<number>[] = []
  for (const names of rounds) {
    for (const name of names) writes.push(writer.write((tx) => tx.run(sql`INSERT INTO items (id) VALUES (${name})`)))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(writes)
  expect(connection.all(sql`SELECT id FROM items`)).toHaveLength(writes.length)
  return groups
}

const standing = () => 0

test('writes of consecutive rounds of the event loop share a commit', async () => {
  expect(await groupsOf([['a', 'b'], ['c'], ['d', 'e'], [], []], standing)).toBe(1)
})

test('a lone write does not wait for those of later rounds', async () => {
  expect(await groupsOf([['a'], [], ['b']], standing)).toBe(2)
})

test('a group that keeps growing starts after its time', async () => {
  let nowMs = 0
  const passing = (): number => nowMs++
  expect(await groupsOf([['a', 'b'], ['c'], ['d'], ['e'], ['f'], ['g'], ['h']], passing)).toBeGreaterThan(1)
})
