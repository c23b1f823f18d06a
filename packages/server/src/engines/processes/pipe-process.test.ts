import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EngineError } from '../sql/error.ts'
import { PipeProcess } from './pipe-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-pipe-'))
const program = join(folder, 'child.mjs')
// Sends its pid, and never reads its input.
writeFileSync(
  program,
  `const body = String(process.pid)
const head = Buffer.alloc(4)
head.writeUInt32BE(body.length)
process.stdout.write(Buffer.concat([head, Buffer.from(body)]))
setInterval(() => {}, 1000)
`,
)
afterAll(() => rmSync(folder, { recursive: true }))

/** Whether a process runs: one that was not reaped yet does not. */
const isRunning = (pid: number): boolean => !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))

/** A child that has started, and the reason of its exit once it has ended. */
async function startChild() {
  const pid = Promise.withResolvers<number>()
  const exit = Promise.withResolvers<Error>()
  const child = new PipeProcess({
    name: 'test',
    program,
    args: [],
    onFrame: (body) => pid.resolve(Number(body)),
    onExit: exit.resolve,
  })
  return { child, pid: await pid.promise, exit: exit.promise }
}

// An unhandled rejection would end the server; the test runner fails on it.
for (const bytes of [10, 1024 * 1024])
  test(`[SQL-23] frames of ${bytes} bytes to a killed child end that child only`, async () => {
    const { child, pid, exit } = await startChild()
    const sent = [child.send(Buffer.alloc(bytes)), child.send(Buffer.alloc(bytes))]
    process.kill(pid, 'SIGKILL')
    sent.push(child.send(Buffer.alloc(bytes)))
    expect(await exit).toBeInstanceOf(EngineError)
    sent.push(child.send(Buffer.alloc(bytes)))
    await Promise.all(sent)
    expect(child.isAlive).toBe(false)
    await child.close()
  })

for (const bytes of [10, 1024 * 1024])
  test.skipIf(process.platform !== 'linux')(
    `[SQL-23] frames of ${bytes} bytes to a child that has ended unnoticed end that child only`,
    async () => {
      const { child, pid, exit } = await startChild()
      process.kill(pid, 'SIGKILL')
      // Without a tick of the event loop, this process cannot notice the end.
      while (isRunning(pid));
      await Promise.all([child.send(Buffer.alloc(bytes)), child.send(Buffer.alloc(bytes))])
      expect(await exit).toBeInstanceOf(EngineError)
      expect(child.isAlive).toBe(false)
      await child.close()
    },
  )
