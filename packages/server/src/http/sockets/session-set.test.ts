import { expect, test } from 'bun:test'
import { createSessionSet } from './session-set.ts'
import type { SocketHandler } from './socket-handler.ts'

function conversation(closed: string[], name: string): SocketHandler & { readonly name: string } {
  let rate = 1
  return {
    name,
    get messageRate() {
      return rate++
    },
    onOpen() {},
    onAuth: () => ({}),
    afterAuth() {},
    onMessage() {},
    onDrain() {},
    onClose() {
      closed.push(name)
    },
  }
}

test('a session is tracked until its socket is closed', () => {
  const closed: string[] = []
  const sessions = createSessionSet<ReturnType<typeof conversation>>()
  const [one, other] = ['one', 'other'].map((name) => sessions.add(conversation(closed, name)))
  expect([...sessions].map(({ name }) => name)).toEqual(['one', 'other'])
  one?.onClose()
  expect(closed).toEqual(['one'])
  expect([...sessions]).toEqual([other as never])
})

test('accessors of a session are preserved', () => {
  const session = createSessionSet<SocketHandler>().add(conversation([], 'one'))
  expect([session.messageRate, session.messageRate]).toEqual([1, 2])
})
