/** Clients of the rooms benchmark classify the messages of each competitor. */
import { expect, test } from 'bun:test'
import { createTransport, messageKinds, type TransportName } from './transports.ts'

function receive(name: TransportName, message: string | Buffer): { what: number; sent: string[] } {
  const sent: string[] = []
  // Surrounded by other bytes, as in a frame.
  const bytes = Buffer.concat([Buffer.from('12'), Buffer.from(message), Buffer.from('34')])
  const what = createTransport(name).receive(bytes, 2, bytes.length - 2, (text) => sent.push(text.toString('latin1')))
  return { what, sent }
}

test.each<[TransportName, string | Buffer, number]>([
  ['plinth', '{"type":"action_result","requestId":"17","result":17,"actionType":"move"}', 17],
  ['plinth', '{"type":"shared_delta","delta":{"positions.a.x":1},"version":2}', messageKinds.delta],
  ['plinth', '{"type":"sync","sharedState":{},"sharedVersion":1}', messageKinds.joined],
  ['plinth', '{"type":"member_join","memberId":"a","state":{}}', messageKinds.other],
  ['plinth', '{"type":"action_error","requestId":"17","code":"RATE_LIMITED","message":"No"}', messageKinds.rejected],
  ['plinth-msgpack', Buffer.from([0x94, 1, 7, 0, 3]), messageKinds.delta],
  ['plinth-msgpack', Buffer.from([0xdc, 0, 20, 1, 7]), messageKinds.delta],
  ['plinth-msgpack', Buffer.from([0x91, 0]), messageKinds.other],
  ['plinth-batch', Buffer.from([0x94, 1, 7, 0, 3]), messageKinds.delta],
  ['socket-io', '4317[17]', 17],
  ['socket-io', '42["delta",{}]', messageKinds.delta],
  ['socket-io', '42["state",{}]', messageKinds.joined],
  ['colyseus', Buffer.from([22, 17, 0, 17]), 17],
  ['colyseus', Buffer.from([22, 0xcc, 200, 0, 0xcc, 200]), 200],
  ['colyseus', Buffer.from([22, 0xcd, 0x02, 0x01, 0, 0xcd, 0x01, 0x02]), 258],
  ['colyseus', Buffer.from([15, 1, 2, 3]), messageKinds.delta],
  ['colyseus', Buffer.from([14]), messageKinds.joined],
])('%s: %p is classified', (name, message, what) => {
  expect(receive(name, message)).toEqual({ what, sent: [] })
})

test('handshakes and heartbeats are answered', () => {
  expect(receive('plinth', '{"type":"auth_success","userId":"a"}').sent).toEqual(['{"type":"join"}'])
  expect(receive('socket-io', '0{"sid":"a"}').sent).toEqual(['40'])
  expect(receive('socket-io', '2').sent).toEqual(['3'])
  expect(receive('colyseus', Buffer.from([10, 1, 65])).sent).toEqual(['\n'])
})

test.each<[TransportName, string | Buffer]>([
  ['plinth', '{"type":"action_result","requestId":"17","result":18,"actionType":"move"}'],
  ['plinth', '{"type":"action_error","requestId":"17","code":"INVALID_STATE","message":"No"}'],
  ['plinth', '{"type":"kicked"}'],
  ['socket-io', '4317[18]'],
  ['socket-io', '44{"message":"No"}'],
  ['colyseus', Buffer.from([22, 17, 0, 18])],
  ['colyseus', Buffer.from([22, 17, 2, 17])],
  ['colyseus', Buffer.from([11, 1])],
])('%s: %p fails the run', (name, message) => {
  expect(() => receive(name, message)).toThrow()
})
