import { expect, test } from 'bun:test'
import { hostInvocationsMax } from '../../limits/functions.ts'
import { type Claim, ClaimTable } from './claims.ts'

const program = `
import { openClaims } from ${JSON.stringify(new URL('./claims.ts', import.meta.url).pathname)}
const claims = openClaims()
process.on('message', ({ step, ...one }) => {
  const isMine = claims.claim(one)
  if (step !== undefined) claims.note(one, step)
  process.send(isMine)
})
process.send('up')
`

/** A table and a process that claims. */
async function open() {
  const table = new ClaimTable()
  let answered = Promise.withResolvers<unknown>()
  const child = Bun.spawn([process.execPath, '-e', program], {
    stdio: ['ignore', 'ignore', 'inherit', table.descriptor],
    ipc: (answer) => answered.resolve(answer),
  })
  table.release()
  expect(await answered.promise).toBe('up')
  return {
    table,
    async claim(one: Claim & { readonly step?: number }): Promise<unknown> {
      answered = Promise.withResolvers()
      child.send(one)
      return answered.promise
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

test('[FN-HOST-10] an invocation is either claimed by the host or withdrawn by the server', async () => {
  await using opened = await open()
  const { table, claim } = opened
  const offer = table.offer('a')
  expect(table.hasBegun('a')).toBe(false)
  expect(await claim(offer)).toBe(true)
  expect([table.hasBegun('a'), table.withdraw('a')]).toEqual([true, false])
  const other = table.offer('b')
  expect(table.withdraw('b')).toBe(true)
  expect(await claim(other)).toBe(false)
})

test('[FN-HOST-10] an outdated message claims nothing, although its slot has been offered again', async () => {
  await using opened = await open()
  const { table, claim } = opened
  const withdrawn = table.offer('a')
  table.withdraw('a')
  const again = table.offer('b')
  expect(again.slot).toBe(withdrawn.slot)
  expect(await claim(withdrawn)).toBe(false)
  expect(table.hasBegun('b')).toBe(false)
  expect(await claim(again)).toBe(true)
})

test('[FN-HOST-10] slots of ended invocations are free again', () => {
  const table = new ClaimTable()
  table.release()
  for (let round = 0; round < 3; round++) {
    const ids = Array.from({ length: hostInvocationsMax }, (_, at) => `${round}-${at}`)
    for (const id of ids) table.offer(id)
    expect(() => table.offer('one more')).toThrow()
    for (const [at, id] of ids.entries()) at % 2 === 0 ? table.end(id) : table.withdraw(id)
  }
  table.end('unknown')
  expect(table.withdraw('unknown')).toBe(false)
})

test('[FN-HOST-10] the server sees the step of an invocation that the host runs', async () => {
  await using opened = await open()
  const { table, claim } = opened
  const offer = table.offer('a')
  expect(table.step('a')).toBe(0)
  expect(await claim({ ...offer, step: 2 })).toBe(true)
  expect([table.step('a'), table.step('unknown')]).toEqual([2, 0])
  table.end('a')
  expect(table.offer('b').slot).toBe(offer.slot)
  expect(table.step('b')).toBe(0)
})
