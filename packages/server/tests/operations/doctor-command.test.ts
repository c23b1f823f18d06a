/** `plinth doctor --running`: advice on a running server. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { createServer, rootKey } from '../harness/server.ts'

const commandLine = openCommandLine([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'doctor'], 'SIGKILL')
beforeEach(() => writeFileSync(join(commandLine.folder, 'plinth.config.ts'), 'export default {}'))

const text = { type: 'string' } as const
const config = {
  databases: { shared: { tables: { guestbook: { schema: { text }, access: { read: true, insert: true } } } } },
} as const

const server = createServer({ config }, engines[0] as (typeof engines)[0])
beforeAll(() => server.open())
afterAll(() => server.close())

const run = (...words: readonly string[]) =>
  commandLine.run([...words, '--url', server.url], { PLINTH_SERVICE_KEY: rootKey })

test('[SYS-31] plinth doctor --running prints the advice, and exits with 1 if it is severe', async () => {
  const { code, out, error } = await run('--running')
  expect([code, error]).toEqual([1, ''])
  expect(out).toContain('HIGH   shared.guestbook: Anyone can create records\n  The rule is true for callers')
  expect(out).toContain('\n    insert: (auth) => auth && { userId: auth.id },')
  const json = await run('--json')
  expect(JSON.parse(json.out).items).toContainEqual(expect.objectContaining({ id: 'open-write:shared.guestbook' }))
})

test('[SYS-31] without a running server it says so', async () => {
  const { code, error } = await commandLine.run(['--running', '--data', 'nothing'])
  expect(code).not.toBe(0)
  expect(error).toContain('No running server was found')
})
