import { describe, expect, test } from 'bun:test'
import { manualClock } from './clock.ts'
import { createLog, type Log, type LogOptions } from './log.ts'

/** A log of any events, since these tests are about lines. */
interface AnyLog extends Pick<Log, 'flush'> {
  debug(event: string, fields?: Readonly<Record<string, unknown>>): void
  info(event: string, fields?: Readonly<Record<string, unknown>>): void
  warn(event: string, fields?: Readonly<Record<string, unknown>>): void
  error(event: string, fields?: Readonly<Record<string, unknown>>): void
}

function collect(options: Partial<LogOptions> = {}) {
  const writes: string[] = []
  const log: AnyLog = createLog({
    format: 'json',
    clock: manualClock(),
    write: (text) => writes.push(text),
    ...options,
  })
  const lines = (): Record<string, unknown>[] => {
    log.flush()
    return writes
      .join('')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  return { log, writes, lines }
}

describe('json lines', () => {
  test('time, level, event, then the fields', () => {
    const { log, writes } = collect()
    log.info('request', { method: 'GET', status: 200, ms: 0.5 })
    log.warn('no fields')
    log.flush()
    expect(writes.join('')).toBe(
      '{"time":"2026-01-31T12:00:00.000Z","level":"info","event":"request","method":"GET","status":200,"ms":0.5}\n' +
        '{"time":"2026-01-31T12:00:00.000Z","level":"warn","event":"no fields"}\n',
    )
  })

  test('lines are held and written together', () => {
    const { log, writes } = collect()
    log.info('one')
    log.info('two')
    expect(writes).toHaveLength(0)
    log.flush()
    log.flush()
    expect(writes).toHaveLength(1)
  })

  test('an error is written at once, in order', () => {
    const { log, writes } = collect()
    log.info('before')
    log.error('broken')
    expect(writes).toHaveLength(1)
    expect(writes[0]).toMatch(/before.*\n.*broken/)
  })

  test('a full buffer is written without waiting', () => {
    const { log, writes } = collect()
    for (let index = 0; index < 1000; index++) log.info('x'.repeat(100))
    expect(writes.length).toBeGreaterThan(0)
    expect(writes[0]?.length).toBeLessThan(66 * 1024)
  })

  test('below the level nothing is said', () => {
    const { log, lines } = collect({ level: 'warn' })
    log.debug('a')
    log.info('b')
    log.warn('c')
    expect(lines().map((line) => line.event)).toEqual(['c'])
  })

  test('secrets are hidden by name, also inside', () => {
    const { log, writes } = collect()
    log.info('headers', { Authorization: 'Bearer abc', headers: { 'x-platform-service-key': 'abc', host: 'h' } })
    log.info('flat', { accessToken: 'abc', password: 'abc', serviceKey: 'abc' })
    log.flush()
    expect(writes.join('')).not.toContain('abc')
    expect(writes.join('')).toContain('"host":"h"')
  })

  test('errors come with stack and causes', () => {
    const { log, lines } = collect()
    log.error('failed', { error: new TypeError('outer', { cause: new Error('inner') }) })
    const { error } = lines()[0] as { error: { name: string; stack: string; cause: { message: string } } }
    expect(error).toMatchObject({ name: 'TypeError', message: 'outer', cause: { message: 'inner' } })
    expect(error.stack).toContain('log.test.ts')
  })

  test('nothing a caller passes makes it fail or grow without bound', () => {
    const { log, lines } = collect()
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    log.info('cycle', { cycle })
    log.info('big', { value: 1n })
    log.info('long', { text: 'x'.repeat(100_000) })
    const [first, second, third] = lines()
    expect(first).toMatchObject({ fields: '[not serialisable]' })
    expect(second).toMatchObject({ value: '1' })
    expect(JSON.stringify(third).length).toBeLessThan(20_000)
  })
})

describe('pretty lines', () => {
  test('one short line, words without quotes', () => {
    const { log, writes } = collect({ format: 'pretty' })
    log.info('request', { method: 'GET', path: '/a', note: 'two words', accessToken: 'abc' })
    log.flush()
    expect(writes.join('')).toBe(
      '12:00:00.000 info  request method=GET path=/a note="two words" accessToken=[hidden]\n',
    )
  })

  test('what comes from outside cannot forge a line or steer the terminal', () => {
    const { log, writes } = collect({ format: 'pretty' })
    log.info('a\nb\x1b[2J', { path: '/x\n12:00:00.000 error forged\x1b[2J' })
    log.flush()
    expect(writes.join('').trimEnd().split('\n')).toHaveLength(1)
    expect(writes.join('')).not.toContain('\x1b')
  })

  test('an error shows its stack below', () => {
    const { log, writes } = collect({ format: 'pretty' })
    log.error('failed', { error: new Error('why') })
    expect(writes.join('')).toMatch(/failed error=why\n.*Error: why\n\s+at /)
  })
})
