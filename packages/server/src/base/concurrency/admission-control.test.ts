import { expect, test } from 'bun:test'
import {
  expensiveSliceMs,
  expensiveStanding,
  expensiveWaitingMax,
  expensiveWaitingPerCallerMax,
  expensiveWaitMs,
} from '../../limits/api.ts'
import { AdmissionControl } from './admission-control.ts'
import { QueueFullError, QueueTimeoutError } from './fair-queue.ts'

const never = new AbortController().signal

/** AdmissionControl whose rounds and time the test moves, and the order in which requests began or why they did not. */
function setting() {
  let nowMs = 0
  let due: (() => void)[] = []
  const admission = new AdmissionControl({ elapsedMs: () => nowMs, nextRound: (callback) => void due.push(callback) })
  const outcomes: string[] = []
  /** The name of a request begins with that of its caller. */
  const request = (name: string, signal = never): void => {
    try {
      const admitted = admission.admit(name.charAt(0), signal)
      if (!admitted) outcomes.push(name)
      admitted?.then(
        () => outcomes.push(name),
        (error) => outcomes.push(`${name} ${error instanceof QueueTimeoutError ? 'late' : String(error)}`),
      )
    } catch (error) {
      outcomes.push(`${name} ${error instanceof QueueFullError ? error.bound : String(error)}`)
    }
  }
  /** The next round of the event loop, in which work of `ms` is done. */
  const round = async (ms = expensiveSliceMs): Promise<void> => {
    const callbacks = due
    due = []
    for (const callback of callbacks) callback()
    await Promise.resolve()
    await Promise.resolve()
    nowMs += ms
  }
  const work = (ms: number): void => {
    nowMs += ms
  }
  return { admission, outcomes, request, round, work }
}

/** Makes every request wait longer than the target for as long as it takes to call the queue standing. */
async function overload({ request, round, work, outcomes }: ReturnType<typeof setting>): Promise<void> {
  const { targetMs, afterMs } = expensiveStanding
  // Of four requests that are added in a round one begins, so that waits grow by three quarters of a round in each.
  const rounds = Math.ceil(((targetMs * 4) / 3 + afterMs) / expensiveSliceMs) + 2
  request('z')
  work(expensiveSliceMs)
  for (let at = 0; at < rounds; at++) {
    for (const caller of ['a', 'b', 'd', 'e']) request(`${caller}${at}`)
    await round()
  }
  outcomes.length = 0
}

test('requests of one slice begin at once; the others wait for later rounds, one in each', async () => {
  const { outcomes, request, round, work } = setting()
  request('a1')
  work(expensiveSliceMs - 1)
  request('a2')
  work(1)
  request('a3')
  request('a4')
  expect(outcomes).toEqual(['a1', 'a2'])
  await round()
  expect(outcomes).toEqual(['a1', 'a2', 'a3'])
  await round()
  expect(outcomes).toEqual(['a1', 'a2', 'a3', 'a4'])
  await round()
  request('a5')
  expect(outcomes.at(-1)).toBe('a5')
})

test('callers take admission', async () => {
  const { outcomes, request, round, work } = setting()
  request('z')
  work(expensiveSliceMs)
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) request(name)
  for (let at = 0; at < 6; at++) await round()
  expect(outcomes).toEqual(['z', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('a burst waits; beyond the bounds of a caller and of all it is refused', () => {
  const { admission, outcomes, request, work } = setting()
  request('z')
  work(expensiveSliceMs)
  for (let at = 0; at <= expensiveWaitingPerCallerMax; at++) request(`a${at}`)
  expect(outcomes).toEqual(['z', `a${expensiveWaitingPerCallerMax} caller`])
  for (const caller of 'bcdefg') for (let at = 0; at < expensiveWaitingPerCallerMax; at++) request(`${caller}${at}`)
  expect(admission.waiting).toBe(expensiveWaitingMax)
  expect(outcomes.at(-1)).toBe(`g${expensiveWaitingPerCallerMax - 1} all`)
  expect(admission.refused).toBe(outcomes.length - 1)
})

test('a request that has waited too long is refused instead of begun', async () => {
  const { admission, outcomes, request, round, work } = setting()
  request('z')
  work(expensiveSliceMs)
  request('a1')
  work(expensiveWaitMs + 1)
  request('a2')
  await round()
  expect(outcomes).toEqual(['z', 'a1 late', 'a2'])
  expect(admission.refused).toBe(1)
})

test('while every request waits too long, a caller has few waiting and further ones are refused at once', async () => {
  const all = setting()
  const { outcomes, request, round } = all
  await overload(all)
  const before = all.admission.waiting
  // One that has nothing waiting is not refused, whatever the others do.
  for (const name of ['c1', 'c2', 'c3']) request(name)
  expect(outcomes).toEqual(['c3 all'])
  expect(all.admission.waiting).toBe(before + expensiveStanding.waitingPerCaller)
  for (let at = 0; at < 5; at++) await round()
  expect(outcomes).toContain('c1')
})

test('overload is over once requests begin in time', async () => {
  const all = setting()
  const { admission, outcomes, request, round } = all
  await overload(all)
  while (admission.waiting > 0) await round()
  await round()
  outcomes.length = 0
  for (const name of ['a1', 'a2']) request(name)
  all.work(expensiveSliceMs)
  for (const name of ['a3', 'a4', 'a5', 'a6']) request(name)
  for (let at = 0; at < 4; at++) await round()
  expect(outcomes).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'a6'])
})

test('an aborted request does not begin', async () => {
  const { outcomes, request, round, work } = setting()
  const controller = new AbortController()
  request('z')
  work(expensiveSliceMs)
  request('a1', controller.signal)
  request('b1')
  controller.abort(new Error('gone'))
  await round()
  expect(outcomes).toEqual(['z', 'a1 Error: gone', 'b1'])
})

test('the system clock and rounds of the event loop are the defaults', async () => {
  const admission = new AdmissionControl()
  const begun: number[] = []
  for (let at = 0; at < 5; at++) {
    const admitted = admission.admit('a', never)
    if (admitted) await admitted
    begun.push(at)
  }
  expect(begun).toHaveLength(5)
  expect(admission.waiting).toBe(0)
})
