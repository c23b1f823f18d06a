/** What operators see of the processes that run functions, and of the queues. */
import { afterAll, expect, test } from 'bun:test'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'

const project = openFunctionProject(`
export const ping = rpc({ caller: 'anyone' }, () => process.pid)
export const end = rpc({ caller: 'anyone' }, () => process.exit(3))
export const welcome = queue('mails', { retries: 0 }, (input) => { if (input.fails) throw new Error('no') })
export const nightly = schedule('0 3 * * *', {}, () => {})
`)
afterAll(() => project.remove())

interface Host {
  readonly pid: number
  readonly state: string
}

describeServer('operating functions', { config: {}, settings: { projectFolder: project.folder } }, (server) => {
  const read = async (path: string) => (await server.service.get(`/api/functions/${path}`)).body

  test('[FN-HOST-19] the processes are listed with their memory, and those that ended are counted', async () => {
    const pid = (await server.anonymous.post('/api/fn/ping', null)).body
    const before = await read('hosts')
    const host = before.items.find((one: Host) => one.pid === pid)
    expect(host).toEqual({
      pid,
      state: 'ready',
      startedAt: expect.any(String),
      memoryBytes: expect.any(Number),
      invocations: 0,
    })
    expect(host.memoryBytes).toBeGreaterThan(1024 * 1024)
    expect(before).toMatchObject({ waiting: 0, restarts: 0, lastEnd: null, memoryBytesMax: expect.any(Number) })
    expect((await server.anonymous.post('/api/fn/end', null)).status).toBe(503)
    const after = await read('hosts')
    expect(after).toMatchObject({ restarts: 1, lastEnd: { reason: expect.any(String) } })
  })

  test('[FN-JOB-10] queues and functions with jobs are listed with their counts and pauses', async () => {
    const enqueue = (input: object) => server.service.post('/api/functions/jobs', { queue: 'mails', input })
    expect((await enqueue({})).status).toBe(201)
    expect((await enqueue({ fails: true })).status).toBe(201)
    await server.finishDue()
    await server.service.post('/api/functions/queues/mails/pause', undefined)
    await enqueue({})
    const { items } = await read('queues')
    expect(items.map(({ name }: { name: string }) => name)).toEqual(['@mail', 'mails', 'nightly'])
    expect(items[1]).toEqual({
      name: 'mails',
      function: 'welcome',
      kind: 'queue',
      pausedAt: expect.any(String),
      counts: { waiting: 1, running: 0, failed: 0, done: 1, dead: 1 },
    })
    expect(items[2]).toMatchObject({ kind: 'schedule', pausedAt: null, counts: { waiting: 0, done: 0 } })
  })
})
