import { expect, test } from 'bun:test'
import type { ChangeType } from '../matching/classifier.ts'
import { type ChangeEvent, coalesce } from './messages.ts'

function events(...steps: readonly (readonly [ChangeType, string])[]): ChangeEvent[] {
  return steps.map(([type, id], seq) => {
    const position = { from: '0', to: '9', seq, atMs: 0, mark: null }
    const change = { instanceId: null, table: 'items', id, requestId: 'r', atMs: 0, version: 1, position, size: 0 }
    return { type, change: { ...change, before: null, after: null, afterText: null } }
  })
}

test('[SOCK-30] several changes of a record become one, and one that came and went is removed', () => {
  const together = coalesce(
    events(
      ['added', 'new'],
      ['modified', 'kept'],
      ['added', 'brief'],
      ['removed', 'back'],
      ['modified', 'new'],
      ['removed', 'gone'],
      ['removed', 'brief'],
      ['added', 'back'],
    ),
  )
  expect(together.map(({ type, change }) => [type, change.id, change.position.seq])).toEqual([
    ['modified', 'kept', 1],
    ['added', 'new', 4],
    ['removed', 'gone', 5],
    ['removed', 'brief', 6],
    ['modified', 'back', 7],
  ])
})
