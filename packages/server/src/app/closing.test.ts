import { expect, test } from 'bun:test'
import { manualClock } from '../base/clock.ts'
import { createLog, silentLog } from '../base/log.ts'
import { closeInTime } from './closing.ts'

const never = () => new Promise<void>(() => {})

test('steps run in their order, each after the one before', async () => {
  const ran: string[] = []
  const step = (name: string) => ({ name, byMs: 20_000, run: async () => void ran.push(name) })
  await closeInTime([step('rooms'), step('requests'), step('engines')], { clock: manualClock(), log: silentLog })
  expect(ran).toEqual(['rooms', 'requests', 'engines'])
})

test('a step that hangs is abandoned at its time, and the others have what is left', async () => {
  const clock = manualClock()
  const lines: string[] = []
  const log = createLog({ format: 'json', write: (text) => void lines.push(text) })
  const ran: string[] = []
  const closing = closeInTime(
    [
      { name: 'rooms', byMs: 8000, run: never },
      { name: 'requests', byMs: 18_000, run: never },
      { name: 'sockets', byMs: 18_000, run: () => void ran.push('sockets') },
      { name: 'engines', byMs: 20_000, run: never },
    ],
    { clock, log },
  )
  expect(await clock.waited()).toBe(8000)
  clock.advance(8000)
  expect(await clock.waited()).toBe(10_000)
  clock.advance(10_000)
  while ((await clock.waited()) !== 2000) clock.advance(0)
  expect(ran).toEqual(['sockets'])
  clock.advance(2000)
  await closing
  log.flush()
  const abandoned = [...lines.join('').matchAll(/"close\.abandoned","step":"(\w+)"/g)].map(([, step]) => step)
  expect(abandoned).toEqual(['rooms', 'requests', 'engines'])
})

test('a step that fails is thrown once the others have run', async () => {
  const ran: string[] = []
  const failure = new Error('disk')
  const steps = [
    { name: 'rooms', byMs: 10, run: () => Promise.reject(failure) },
    { name: 'engines', byMs: 10, run: () => void ran.push('engines') },
  ]
  await expect(closeInTime(steps, { clock: manualClock(), log: silentLog })).rejects.toBe(failure)
  expect(ran).toEqual(['engines'])
})
