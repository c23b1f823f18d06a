/** That the clients of the rooms bench tell the competitors' messages apart. */
import { expect, test } from 'bun:test'
import { createTransport, heard, type TransportName } from './transports.ts'

function hear(name: TransportName, message: string | Buffer): { what: number; said: string[] } {
  const said: string[] = []
  // As in a frame: something before it and after it.
  const bytes = Buffer.concat([Buffer.from('12'), Buffer.from(message), Buffer.from('34')])
  const what = createTransport(name).hear(bytes, 2, bytes.length - 2, (text) => said.push(text.toString('latin1')))
  return { what, said }
}

test.each<[TransportName, string | Buffer, number]>([
  ['plinth', '{"type":"action_result","requestId":"17","result":17}', 17],
  ['plinth', '{"type":"shared_delta","delta":{"places.a.x":1},"version":2}', heard.delta],
  ['plinth', '{"type":"sync","sharedState":{},"sharedVersion":1}', heard.joined],
  ['plinth', '{"type":"member_join","memberId":"a","state":{}}', heard.other],
  ['plinth', '{"type":"action_error","requestId":"17","code":"RATE_LIMITED","message":"No"}', heard.refused],
  ['socket-io', '4317[17]', 17],
  ['socket-io', '42["delta",{}]', heard.delta],
  ['socket-io', '42["state",{}]', heard.joined],
  ['colyseus', Buffer.from([22, 17, 0, 17]), 17],
  ['colyseus', Buffer.from([22, 0xcc, 200, 0, 0xcc, 200]), 200],
  ['colyseus', Buffer.from([22, 0xcd, 0x02, 0x01, 0, 0xcd, 0x01, 0x02]), 258],
  ['colyseus', Buffer.from([15, 1, 2, 3]), heard.delta],
  ['colyseus', Buffer.from([14]), heard.joined],
])('%s: %p is told', (name, message, what) => {
  expect(hear(name, message)).toEqual({ what, said: [] })
})

test('what has to be answered is answered', () => {
  expect(hear('plinth', '{"type":"auth_success","userId":"a"}').said).toEqual(['{"type":"join"}'])
  expect(hear('socket-io', '0{"sid":"a"}').said).toEqual(['40'])
  expect(hear('socket-io', '2').said).toEqual(['3'])
  expect(hear('colyseus', Buffer.from([10, 1, 65])).said).toEqual(['\n'])
})

test.each<[TransportName, string | Buffer]>([
  ['plinth', '{"type":"action_result","requestId":"17","result":18}'],
  ['plinth', '{"type":"action_error","requestId":"17","code":"INVALID_STATE","message":"No"}'],
  ['plinth', '{"type":"kicked"}'],
  ['socket-io', '4317[18]'],
  ['socket-io', '44{"message":"No"}'],
  ['colyseus', Buffer.from([22, 17, 0, 18])],
  ['colyseus', Buffer.from([22, 17, 2, 17])],
  ['colyseus', Buffer.from([11, 1])],
])('%s: %p is a failure', (name, message) => {
  expect(() => hear(name, message)).toThrow()
})
