/** Requests, Redis replies and reports of the key-value run. */
import { expect, test } from 'bun:test'
import { Histogram } from '../load/histogram.ts'
import { replaceMeasured } from '../report.ts'
import { testEnvironment } from '../setup/fixtures/environment.ts'
import { compare, type Round } from '../setup/measure.ts'
import { formatCommand, measureReply, runRedisLoad } from './kv-redis-load.ts'
import { toMarkdown } from './kv-report.ts'
import { gets, keyAt, redisGets, redisSets, sets, valueAt } from './kv-requests.ts'

test('requests to the server and to Redis use the same keys and values in the same order', () => {
  const bodyOf = (text: string) => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4))
  for (const at of [0, 1, 7777]) {
    const key = keyAt(at)
    const value = valueAt(at)
    expect(bodyOf(gets()[at]?.text ?? '')).toEqual({ action: 'get', key })
    expect(bodyOf(sets()[at]?.text ?? '')).toEqual({ action: 'set', key, value })
    expect(redisGets()[at]?.text).toBe(`*2\r\n$3\r\nGET\r\n$13\r\n${key}\r\n`)
    expect(redisSets()[at]?.text).toBe(formatCommand('SET', key, JSON.stringify(value)))
  }
})

test.each([
  ['', null],
  ['+OK', null],
  ['+OK\r\n', 5],
  ['$5\r\nhel', null],
  ['$5\r\nhello\r', null],
  ['$5\r\nhello\r\n', 11],
  ['$0\r\n\r\n', 6],
  ['$5\r\n\r\n\r\n\r\r\n', 11],
])('the length of the reply %j is %p bytes', (text, bytes) => {
  expect(measureReply(Buffer.from(text))).toBe(bytes)
})

test.each(['-ERR no such command\r\n', '$-1\r\n', ':1\r\n'])('the reply %j ends the run', (text) => {
  expect(() => measureReply(Buffer.from(text))).toThrow('Redis replied')
})

/** A server that responds to each chunk with the next reply. */
function openAnswering(answers: readonly string[]) {
  const left = [...answers]
  return Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket) => void socket.write(left.shift() ?? '-ERR\r\n') },
  })
}

const job = { password: 'p', connections: 1, warmupSeconds: 0, seconds: 0, pid: process.pid }

test('an unexpected reply fails the job', async () => {
  const commands = [{ text: formatCommand('GET', 'a'), kind: '$', includes: 'right' } as const]
  for (const [answer, isRight] of [
    ['$5\r\nright\r\n', true],
    ['$5\r\nwrong\r\n', false],
    ['+OK\r\n', false],
    ['$-1\r\n', false],
  ] as const) {
    const listener = openAnswering(['+OK\r\n', answer])
    const running = runRedisLoad({ ...job, port: listener.port, commands, total: 1 })
    if (isRight) expect((await running).answered).toBe(1)
    else await expect(running).rejects.toThrow(/Wrong reply|Redis replied/)
    listener.stop(true)
  }
})

test('only the key-value part of the page is replaced', async () => {
  const round = async (): Promise<Round> => {
    const latencies = new Histogram()
    latencies.add(5)
    return { units: 50, seconds: 1, cpuSeconds: 0.95, loadCpuSeconds: 0.5, latencies }
  }
  const baseline = { baseline: { title: 'Redis GET', budget: null }, run: round }
  const measurement = { scenario: { title: 'Get' }, ...(await compare({ pid: 0, run: round }, [baseline], 1)) }
  const markdown = toMarkdown(testEnvironment, { rounds: 3, seconds: 1, warmupSeconds: 0 }, '8.0', [measurement])
  const begin = '<!-- measured key-value: begin -->'
  const end = '<!-- measured key-value: end -->'
  const page = `before\n${begin}\nold\n${end}\nafter`
  expect(replaceMeasured(page, 'kv', markdown)).toBe(`before\n${begin}\n\n${markdown}\n\n${end}\nafter`)
  expect(markdown).toContain('SQLite 3.50.0, Redis 8.0')
  expect(markdown).toContain('| Get | 50 | 19000.0 | Redis GET | 100% | 100% |')
})
