import { expect, test } from 'bun:test'
import { roomAnswersWaitingMax, roomWaitingAnswerCharsMax } from '../../../limits/rooms.ts'
import { assemble, encode, type RoomText } from '../engine/messages/messages.ts'
import { type AnsweredSocket, WaitingAnswers } from './waiting-answers.ts'

const answer = (result: unknown): RoomText =>
  assemble('action_result', `"requestId":"r","result":${JSON.stringify(result)},"actionType":"move"`)

function open() {
  const sent: (readonly RoomText[])[] = []
  const waiting = new WaitingAnswers((_, answers) => sent.push(answers))
  const connect = (id: string): { socket: AnsweredSocket; add: (text: RoomText) => boolean } => {
    const socket: AnsweredSocket = { roomName: `game/${id}`, answers: [] }
    return { socket, add: (text) => waiting.add(socket, socket.answers as RoomText[], text) }
  }
  return { waiting, sent, connect }
}

test('[ROOM-CAPS-3] answers wait, each socket has its own, and other messages do not wait', () => {
  const { waiting, sent, connect } = open()
  const [one, two] = [connect('a'), connect('b')]
  expect([one.add(answer(1)), two.add(answer(2)), one.add(answer(3))]).toEqual([true, true, true])
  expect(one.add(encode({ type: 'kicked' }))).toBe(false)
  expect(sent).toEqual([])
  waiting.sendOfRoom('game/a')
  expect(sent).toEqual([[answer(1), answer(3)]])
  waiting.sendAll()
  waiting.sendAll()
  expect(sent).toEqual([[answer(1), answer(3)], [answer(2)]])
})

test('[ROOM-CAPS-3] too many answers, or a long one, are sent at once, in order', () => {
  const { waiting, sent, connect } = open()
  const { add } = connect('a')
  for (let count = 0; count < roomAnswersWaitingMax; count++) add(answer(count))
  expect(sent).toEqual([Array.from({ length: roomAnswersWaitingMax }, (_, at) => answer(at))])
  const long = answer('x'.repeat(roomWaitingAnswerCharsMax))
  add(answer('short'))
  add(long)
  expect(sent.at(-1)).toEqual([answer('short'), long])
  add(answer('last'))
  waiting.sendAll()
  expect(sent.at(-1)).toEqual([answer('last')])
})
