/** The catalog of log events: every event is logged by the program, and the reference page lists all of them. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from '../../../../scripts/reference/log-events-page.ts'
import { isProgram, readRepository } from '../../../../scripts/tidy/repository.ts'
import { logEvents } from '../../src/log-events/log-events.ts'

const root = join(import.meta.dir, '../../../..')

test('every event of the catalog is logged', () => {
  const program = [...readRepository(root)].filter(([path]) => isProgram(path) && !path.includes('/log-events-'))
  const text = program.map(([, text]) => text).join('\n')
  expect(
    Object.keys(logEvents).filter((event) => !text.includes(`'${event}'`) && !text.includes(`"${event}"`)),
  ).toEqual([])
})

test('event names have the form area.what_happened', () => {
  for (const event of Object.keys(logEvents)) expect(event).toMatch(/^[a-z][a-z0-9]*\.[a-z0-9]+(?:_[a-z0-9]+)*$/)
})

test('no field has the name of a standard member of a log line', () => {
  const reserved = ['time', 'level', 'event']
  for (const { fields } of Object.values(logEvents))
    expect(fields.filter((field) => reserved.includes(field))).toEqual([])
})

test('docs/reference/log-events.md is up to date; scripts/log-events.ts writes it', () => {
  expect(readFileSync(join(root, 'docs/reference/log-events.md'), 'utf8')).toBe(format())
})
