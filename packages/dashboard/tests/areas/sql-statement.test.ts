/** What the SQL console sees of a statement without running it. */
import { expect, test } from 'bun:test'
import { mayWrite, positionOf } from '../../src/areas/stores/sql/statement.ts'

test.each([
  ['SELECT * FROM sales', false],
  ['-- delete\nSELECT \'drop\', "update" FROM sales /* insert */', false],
  ['WITH a AS (SELECT 1) SELECT * FROM a', false],
  ['WITH a AS (SELECT 1) DELETE FROM sales', true],
  ['EXPLAIN DELETE FROM sales', true],
  ['/* select */ drop table sales', true],
  ['SELECT * INTO copy FROM sales', true],
  ["SELECT 'it''s'; DELETE FROM sales", true],
  ['PRAGMA user_version = 3', true],
  ['(SELECT 1)', true],
])('%s may write: %p', (statement, expected) => {
  expect(mayWrite(statement)).toBe(expected)
})

test.each([
  ['near "FORM": syntax error', 'SELECT *\nFORM sales', { begin: 9, end: 13, line: 2, column: 1 }],
  ['syntax error at or near "FORM"', 'SELECT * FORM sales', { begin: 9, end: 13, line: 1, column: 10 }],
  ['relation "sale" does not exist', 'SELECT * FROM sale', { begin: 14, end: 18, line: 1, column: 15 }],
  ['near ",": syntax error', 'SELECT a,, b', null],
  ['no such table: gone', 'SELECT 1', null],
  ['The database is full', 'SELECT 1', null],
])('%s of %p', (message, statement, expected) => {
  expect(positionOf(message, statement)).toEqual(expected)
})
