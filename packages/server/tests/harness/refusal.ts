/** Asserts the common format of error responses (rules ERR-1 to ERR-5). */
import { expect } from 'bun:test'
import type { Answer } from './client.ts'

const fieldCodes = new Set([
  'required',
  'type',
  'min',
  'max',
  'pattern',
  'enum',
  'unique',
  'unknown',
  'reference',
  'operator',
])

/** Internal details that an error must not contain: SQL, engine names, stacks, files, JavaScript error texts. */
const insideWords =
  /sqlite|constraint failed|syntax error|near "|no such (table|column)|SELECT .* FROM|INSERT INTO|at .+\.ts:\d+|node_modules|\/tmp\/|undefined is not|Cannot read|ZodError|JSON Parse error/i

/** Asserts the status and the format of an error response; returns the body. */
export function expectRefusal(answer: Answer, status: number, names?: string): Answer['body'] {
  if (answer.status !== status)
    throw new Error(`expected a refusal with ${status}, got ${answer.status}: ${answer.text.slice(0, 500)}`)
  const { body } = answer
  expect([body?.code, typeof body?.message]).toEqual([status, 'string'])
  expect(body.slug).toMatch(/^[a-z]+(-[a-z]+)*$/)
  expect(Object.keys(body).filter((key) => !['code', 'message', 'slug', 'data'].includes(key))).toEqual([])
  expect(body.message.length).toBeGreaterThan(0)
  for (const error of Object.values(body.data ?? {}) as { code: string; message: string }[]) {
    expect(fieldCodes.has(error.code) ? 'known' : `unknown code ${error.code}`).toBe('known')
    expect(error.message.length).toBeGreaterThan(0)
  }
  expect(answer.text).not.toMatch(insideWords)
  expect(answer.headers.get('x-request-id')?.length ?? 0).toBeGreaterThan(0)
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  if (names !== undefined) expect(answer.text).toContain(names)
  return body
}
