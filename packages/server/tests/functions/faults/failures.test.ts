/**
 * Functions that misbehave at run time: each failure is bounded, and named with its place in the code by
 * `GET /api/functions`, the log of the server and the lines of the function.
 */
import { afterAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manualClock } from '../../../src/base/clock.ts'
import { KiB, MiB } from '../../../src/limits/units.ts'
import { open } from '../../harness/config.ts'
import { openFunctionProject, untilHostReady } from '../../harness/functions.ts'
import { openCommandLine } from '../../harness/processes/command-line.ts'
import { describeServer, rootKey } from '../../harness/server.ts'

const command = openCommandLine([process.execPath, join(import.meta.dir, '../../../src/main.ts')], 'SIGKILL')

/** The project writes two lines of imports before it. */
const code = `import { z } from ${JSON.stringify(Bun.resolveSync('zod', import.meta.dir))}
export const ready = rpc({ caller: 'service' }, () => true)
export const throws = before('shared.throwing', ['insert'], ({ row }) => { throw new TypeError('broken') })
export const hangs = before('shared.hanging', ['insert'], () => new Promise(() => {}))
export const exits = before('shared.exiting', ['insert'], () => process.exit(1))
export const spins = before('shared.spinning', ['insert'], () => { for (;;); })
export const shape = before('shared.shaped', ['insert'], () => ({ title: 7 }))
export const field = before('shared.typed', ['insert'], ({ row }) => ({ ...row, title: 7 }))
export const loops = before('shared.looping', ['insert'], async ({ row }, ctx) => { await ctx.service.db('shared').looping.insert({}) })
export const fine = before('shared.paired', ['insert'], () => {})
export const later = before('shared.paired', ['insert'], ({ row }) => { if (row.title === 'bad') throw new Error('only the second') })
export const thumbs = queue('thumbs', { retries: 0, input: z.object({ file: z.string() }) }, () => {})
export const refuses = queue('refuses', { retries: 0 }, () => { throw new HttpError(409, 'no', 'Not now') })
export const stuck = queue('stuck', { retries: 0, timeout: '1s' }, () => new Promise(() => {}))
export const answers = webhook('shared.answered', { url: secret('ANSWERS'), secret: secret('KEY'), on: ['insert'] })
export const redirects = webhook('shared.redirected', { url: secret('REDIRECTS'), secret: secret('KEY'), on: ['insert'] })
export const floods = webhook('shared.flooded', { url: secret('FLOODS'), secret: secret('KEY'), on: ['insert'] })
export const inside = webhook('shared.private', { url: 'http://10.255.255.1/hook', secret: secret('KEY'), on: ['insert'] })
`
const lineOf = (name: string): number => 3 + code.split('\n').findIndex((line) => line.includes(`const ${name} =`))
const project = openFunctionProject(code)
afterAll(() => project.remove())

let isUp = false
let floodedBytes = 0
/** 10 GB, as far as they are read. */
const flood = (): ReadableStream<Uint8Array> =>
  new ReadableStream({
    pull(controller) {
      floodedBytes += 64 * KiB
      if (floodedBytes > 10 * 1024 * MiB) controller.close()
      else controller.enqueue(new Uint8Array(64 * KiB))
    },
  })
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ url }) {
    if (url.endsWith('/redirects')) return new Response(null, { status: 307, headers: { Location: '/answers' } })
    if (url.endsWith('/floods')) return new Response(flood())
    return new Response(null, { status: isUp ? 204 : 500 })
  },
})
afterAll(() => receiver.stop(true))

const tables = ['throwing', 'hanging', 'exiting', 'spinning', 'shaped', 'typed', 'looping', 'paired']
const sent = ['answered', 'redirected', 'flooded', 'private']
const table = { schema: { title: { type: 'string' } }, access: open } as const
const config = {
  databases: { shared: { tables: Object.fromEntries([...tables, ...sent].map((name) => [name, table])) } },
  outbound: { allow: ['127.0.0.0/8'] },
}
const url = `http://127.0.0.1:${receiver.port}`
const environment = {
  ...process.env,
  ANSWERS: `${url}/answers`,
  REDIRECTS: `${url}/redirects`,
  FLOODS: `${url}/floods`,
  KEY: `whsec_${randomBytes(32).toString('base64')}`,
}
const clock = manualClock(Date.now())

describeServer('failures', { config, clock, settings: { projectFolder: project.folder, environment } }, (server) => {
  const { service } = server
  const insert = (name: string, row = {}) => service.post(`/api/db/shared/tables/${name}`, row)
  const find = async (name: string) =>
    (await service.get('/api/functions')).body.items.find((one: { name: string }) => one.name === name)

  async function expectNamed(name: string, message: string): Promise<void> {
    const location = `functions/index.ts:${lineOf(name)}`
    const found = await find(name)
    expect(found).toMatchObject({ state: 'failing', location, lastError: { location } })
    expect(found.lastError.message).toContain(message)
    const logged = server.logged().split('\n')
    const isNamed = (line: string) => line.includes('functions.failed') && line.includes(location)
    expect(logged.filter((line) => isNamed(line) && line.includes(message))).not.toEqual([])
    const { items } = (await service.get(`/api/functions/logs?function=${name}`)).body
    expect(items).toContainEqual(expect.objectContaining({ function: name, level: 'error', location }))
  }

  const hooks: readonly (readonly [name: string, table: string, status: number, slug: string, message: string])[] = [
    ['throws', 'throwing', 500, 'hook-failed', 'broken'],
    ['hangs', 'hanging', 500, 'hook-failed', '500 ms'],
    ['exits', 'exiting', 503, 'unavailable', 'process'],
    ['spins', 'spinning', 500, 'hook-failed', '500 ms'],
    ['shape', 'shaped', 500, 'hook-failed', ''],
    ['field', 'typed', 500, 'hook-failed', 'title'],
    ['loops', 'looping', 500, 'hook-failed', ''],
  ]
  for (const [name, at, status, slug, message] of hooks)
    test(`[FN-21] the hook "${name}" is named with its place, and nothing is stored`, async () => {
      // The case before has ended its process, and the deadline of a hook includes the wait for another one.
      await untilHostReady(service)
      const { status: code, body } = await insert(at)
      expect([code, body.slug]).toEqual([status, slug])
      await expectNamed(name, message)
      expect((await service.get(`/api/db/shared/tables/${at}`)).body.items).toEqual([])
    })

  test('[FN-21] a hook after another one fails and recovers under its own name', async () => {
    await untilHostReady(service)
    expect((await insert('paired', { title: 'bad' })).status).toBe(500)
    await expectNamed('later', 'only the second')
    expect((await find('fine')).state).toBe('active')
    expect((await insert('paired', { title: 'good' })).status).toBe(201)
    expect(await find('later')).toMatchObject({ state: 'active', calls: 2, failures: 1 })
  })

  /** Resolves once a job of the function has ended its attempt. */
  async function attempted(name: string): Promise<void> {
    for (;;) {
      const [job] = (await service.get(`/api/functions/jobs?queue=${name}`)).body.items
      if (job && ['failed', 'dead', 'done'].includes(job.status)) return
    }
  }

  const jobs: readonly (readonly [name: string, input: unknown, message: string])[] = [
    ['thumbs', { file: 7 }, 'input'],
    ['refuses', {}, 'Not now'],
    ['stuck', {}, '1000 ms'],
  ]
  for (const [name, input, message] of jobs)
    test(`[FN-21] the job of "${name}" that fails is named with its place`, async () => {
      // A job that finds no host waits by the clock, which stands still.
      await untilHostReady(service)
      expect((await service.post('/api/functions/jobs', { queue: name, input })).status).toBe(201)
      await attempted(name)
      await expectNamed(name, message)
    })

  test('[FN-21] webhooks whose receivers fail are named with their place, until one is accepted', async () => {
    for (const name of sent) expect((await insert(name)).status).toBe(201)
    for (const name of ['answers', 'redirects', 'floods', 'inside']) await attempted(name)
    await expectNamed('answers', 'answered 500')
    await expectNamed('redirects', 'answered 307')
    await expectNamed('inside', 'not public')
    // The status has accepted the message, whatever follows it.
    expect((await find('floods')).state).toBe('active')
    expect(floodedBytes).toBeLessThan(16 * MiB)
    isUp = true
    await insert('answered')
    while ((await find('answers')).state !== 'active');
    isUp = false
  })

  test('[FN-21] `plinth functions list` shows the last error of a function with its place', async () => {
    await untilHostReady(service)
    expect((await insert('throwing')).status).toBe(500)
    writeFileSync(join(command.folder, 'plinth.config.ts'), 'export default {}')
    const key = { PLINTH_SERVICE_KEY: rootKey, PLINTH_SECRET: 'a-secret-of-a-server-0123456789abcdef' }
    const { out, error } = await command.run(['functions', 'list', '--url', server.url], key)
    expect(error).toBe('')
    expect(out).toContain(
      `before insert of shared.throwing  failing  TypeError: broken (functions/index.ts:${lineOf('throws')})`,
    )
  })
})
