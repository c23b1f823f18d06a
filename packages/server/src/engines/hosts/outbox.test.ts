import { expect, test } from 'bun:test'
import { hostPacketChars } from '../../limits/functions.ts'
import { createOutbox, type Packet } from './outbox.ts'
import {
  decodeFromHost,
  decodeToHost,
  encodeFromHost,
  type FromHost,
  hasBytes,
  sizeOf,
  type ToHost,
} from './protocol.ts'

const open = () => {
  const sent: Packet<FromHost>[] = []
  const outbox = createOutbox<FromHost>({
    hasBytes,
    sizeOf,
    encode: encodeFromHost,
    send: (packet) => void sent.push(packet),
  })
  return { outbox, sent }
}
const tick = () => new Promise<void>((resolve) => setImmediate(resolve))

const lines: readonly FromHost[] = [
  { type: 'up' },
  { type: 'value', id: 'a', json: '{"text":"with\\nlines and \\"quotes\\"","nested":[1,null]}' },
  { type: 'value', id: 'b', json: null },
  { type: 'value', id: 'c', json: '""' },
  { type: 'log', id: 'c', level: 'info', message: 'two\nlines', fields: { json: 'x' } },
  { type: 'chunk', id: 'd', chunk: '{"type":"value"}' },
  { type: 'end', id: 'd' },
]

test('messages of one tick are one packet of text, and arrive in order', async () => {
  const { outbox, sent } = open()
  for (const message of lines) outbox.post(message)
  expect(sent).toEqual([])
  await tick()
  expect(sent.map((packet) => typeof packet)).toEqual(['string'])
  expect([...decodeFromHost(sent[0] as string)]).toEqual(lines as FromHost[])
  await tick()
  expect(sent).toHaveLength(1)
})

test('messages with bytes are sent as they are', async () => {
  const { outbox, sent } = open()
  const chunk: FromHost = { type: 'chunk', id: 'a', chunk: new Uint8Array([1, 2]) }
  outbox.post({ type: 'up' })
  outbox.post(chunk)
  await tick()
  outbox.post({ type: 'up' })
  await tick()
  expect(sent).toEqual([[{ type: 'up' }, chunk], '{"type":"up"}'])
  expect([...decodeFromHost(sent[0] as readonly FromHost[])]).toEqual([{ type: 'up' }, chunk])
})

test('a message can be sent at once with those before it, and large messages do not wait for others', async () => {
  const { outbox, sent } = open()
  outbox.post({ type: 'pong' })
  outbox.send({ type: 'up' })
  expect(sent).toHaveLength(1)
  const json = JSON.stringify('x'.repeat(hostPacketChars))
  outbox.post({ type: 'value', id: 'a', json })
  outbox.post({ type: 'pong' })
  expect(sent).toHaveLength(2)
  await tick()
  expect(sent.map((packet) => [...decodeFromHost(packet)].map(({ type }) => type))).toEqual([
    ['pong', 'up'],
    ['value'],
    ['pong'],
  ])
})

const bytes = new Uint8Array(1)
test.each<[unknown, boolean]>([
  [{ type: 'invoke', input: null }, false],
  [{ type: 'invoke', input: 'text' }, false],
  [{ type: 'invoke', input: { body: 'text' } }, false],
  [{ type: 'invoke', input: { body: bytes } }, true],
  [{ type: 'response', response: { body: bytes } }, true],
  [{ type: 'response', response: { body: null } }, false],
  [{ type: 'request', content: { body: bytes } }, true],
  [{ type: 'chunk', chunk: 'text' }, false],
  [{ type: 'ping' }, false],
])('%p contains bytes: %p', (message, expected) => {
  expect(hasBytes(message as ToHost)).toBe(expected)
})

test('messages to a host are lines', () => {
  const messages: readonly ToHost[] = [{ type: 'ping' }, { type: 'abort', id: 'a\nb', reason: 'timeout' }]
  expect(decodeToHost(messages.map((one) => JSON.stringify(one)).join('\n'))).toEqual([...messages])
  expect(decodeToHost(messages)).toBe(messages)
})
