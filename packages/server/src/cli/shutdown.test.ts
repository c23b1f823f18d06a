import { expect, test } from 'bun:test'
import { manualClock } from '../base/clock.ts'
import { type SignalSource, type StopEvent, waitForShutdown } from './shutdown.ts'

function setUp(close: () => Promise<void>) {
  const clock = manualClock()
  const listeners = new Map<StopEvent, () => void>()
  const exits: number[] = []
  const failures: unknown[] = []
  const process: SignalSource = {
    on: (event, listener) => listeners.set(event, listener),
    exit: (code) => exits.push(code),
  }
  const code = waitForShutdown({
    process,
    endsOnHangup: true,
    clock,
    close,
    onFailure: (error) => failures.push(error),
  })
  return { clock, code, exits, failures, send: (event: StopEvent) => listeners.get(event)?.() }
}

test.each(['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP', 'disconnect'] as const)(
  '%s closes and ends with 0',
  async (event) => {
    let closes = 0
    const { code, exits, send } = setUp(async () => void closes++)
    send(event)
    expect(await code).toBe(0)
    expect({ closes, exits }).toEqual({ closes: 1, exits: [] })
  },
)

test('repeated signals of one Ctrl-C count once, and a second Ctrl-C exits at once', () => {
  const never = new Promise<void>(() => {})
  const { clock, exits, send } = setUp(() => never)
  send('SIGINT')
  clock.advance(499)
  send('SIGINT')
  expect(exits).toEqual([])
  clock.advance(1)
  send('SIGINT')
  send('SIGTERM')
  expect(exits).toEqual([130, 143])
})

test('a close that fails is reported and exits with 1', async () => {
  const failure = new Error('disk')
  const { code, failures, send } = setUp(() => Promise.reject(failure))
  send('SIGTERM')
  expect(await code).toBe(1)
  expect(failures).toEqual([failure])
})
