/** Jobs that functions enqueue within transactions: committed with them or not at all. */
import { afterAll, describe, expect, test } from 'bun:test'
import { functionJobInputChars, transactionJobsMax } from '../../src/limits/function-jobs.ts'
import { engines } from '../harness/engines.ts'
import { declare, functionOf, openNode, openStorage } from '../harness/functions/background-node.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'

const project = openFunctionProject(`
import { z } from ${JSON.stringify(Bun.resolveSync('zod', import.meta.dir))}
export const work = queue('work', { input: z.object({ note: z.string() }) }, async ({ note }, ctx) => {
  await ctx.service.db('shared').done.insert({ note, job: ctx.jobId })
})
const input = (note) => ({ note })
export const commit = rpc({ caller: 'anyone' }, (note, ctx) => ctx.service.db('shared').transaction(async (tx) => {
  tx.notes.insert({ title: note })
  const { jobId } = await ctx.enqueue('work', input(note))
  return jobId
}))
export const alone = rpc({ caller: 'anyone' }, (note, ctx) => ctx.service.db('shared').transaction(async () => {
  // Not awaited, as a change is not.
  for (const n of [1, 2]) void ctx.enqueue('work', input(note + n))
}))
export const fail = rpc({ caller: 'anyone' }, (note, ctx) => ctx.service.db('shared').transaction(async (tx) => {
  tx.notes.insert({ title: note })
  await ctx.enqueue('work', input(note))
  throw new HttpError(409, 'changed-my-mind')
}))
export const denied = rpc({ caller: 'anyone' }, (note, ctx) => ctx.db('shared').transaction(async (tx) => {
  tx.notes.insert({ title: note })
  await ctx.enqueue('work', input(note))
}).catch(({ status }) => status))
export const race = rpc({ caller: 'anyone' }, (note, ctx) => {
  let attempts = 0
  return ctx.service.db('shared').transaction(async (tx) => {
    const { title } = await tx.notes.get('raced')
    if (++attempts < 3) await ctx.service.db('shared').notes.update('raced', { title: title + '.' })
    tx.notes.update('raced', { title: note })
    await ctx.enqueue('work', input(note + attempts))
    return attempts
  })
})
export const late = rpc({ caller: 'anyone' }, async (note, ctx) => {
  let later
  await ctx.service.db('shared').transaction(async (tx) => {
    tx.notes.insert({ title: note })
    later = new Promise((resolve) => setTimeout(resolve, 0)).then(async () => {
      while (!ended) await new Promise((resolve) => setTimeout(resolve, 0))
      return ctx.enqueue('work', input(note))
    })
  })
  const outside = await ctx.enqueue('work', input(note + ' outside'))
  ended = true
  return later.then(() => 'added', ({ message }) => message)
})
let ended = false
export const faulty = rpc({ caller: 'anyone' }, ({ queue, input, count = 1, options }, ctx) => ctx.service.db('shared').transaction(async (tx) => {
  tx.notes.insert({ title: 'faulty' })
  for (let n = 0; n < count; n++) await ctx.enqueue(queue, input, options)
}).then(() => 200, ({ status }) => status))
export const unchecked = rpc({ caller: 'anyone' }, (_, ctx) => ctx.service.db('shared').transaction(async (tx) => {
  tx.notes.insert({ title: 'unchecked' })
  await ctx.enqueue('work', { note: 1 })
}))
export const atOnce = rpc({ caller: 'anyone' }, ({ input, options }, ctx) => ctx.enqueue('work', input, options))
export const inTeam = rpc({ caller: 'anyone' }, (note, ctx) => ctx.service.db('team', 'red').transaction(async (tx) => {
  tx.tasks.insert({ title: note })
  await ctx.enqueue('work', input(note))
}))
`)
afterAll(() => project.remove())

const title = { schema: { title: { type: 'string' } } } as const
const config = {
  databases: {
    shared: { tables: { notes: title, done: { schema: { note: { type: 'string' }, job: { type: 'string' } } } } },
    team: { instance: true, tables: { tasks: title } },
  },
} as const

describeServer('jobs of transactions', { config, settings: { projectFolder: project.folder } }, (server) => {
  const call = (name: string, input: unknown) => server.anonymous.post(`/api/fn/${name}`, input)
  const rowsOf = async (table: string): Promise<Record<string, string>[]> =>
    (await server.service.get(`/api/db/shared/tables/${table}?limit=100`)).body.items
  const notes = async () => (await rowsOf('notes')).map(({ title }) => title)
  const jobs = async () => (await server.service.get('/api/functions/jobs?queue=work&limit=200')).body.items.length
  /** Until a job has run with this note. */
  async function ran(note: string): Promise<Record<string, string>> {
    for (;;) {
      const found = (await rowsOf('done')).find((row) => row.note === note)
      if (found) return found
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  /** Until every change before the call has become its jobs. */
  const dispatched = async (): Promise<void> => {
    const note = crypto.randomUUID()
    await call('commit', note)
    await ran(note)
  }

  test('[FN-TX-1] a job of a transaction runs once it is committed, under the id that the function got', async () => {
    const { status, body } = await call('commit', 'kept')
    expect(status).toBe(200)
    expect((await ran('kept')).job).toBe(body)
    expect(await notes()).toContain('kept')
  })

  test('[FN-TX-1] jobs need no change beside them, and not to be awaited', async () => {
    expect((await call('alone', 'alone')).status).toBe(200)
    await Promise.all([ran('alone1'), ran('alone2')])
  })

  test('[FN-TX-1] jobs of an instance are those of its transactions', async () => {
    expect((await call('inTeam', 'red')).status).toBe(200)
    await ran('red')
  })

  test('[FN-TX-1] a transaction that is not committed has no jobs, and a repeated one those of its last run', async () => {
    await server.service.post('/api/db/shared/tables/notes', { id: 'raced', title: 'r' })
    await dispatched()
    const before = [await jobs(), (await notes()).length]
    expect((await call('fail', 'failed')).status).toBe(409)
    expect((await call('denied', 'denied')).body).toBe(401)
    await dispatched()
    expect([await jobs(), (await notes()).length]).toEqual(before.map((count = 0) => count + 1))
    expect((await call('race', 'raced')).body).toBe(3)
    await ran('raced3')
    await dispatched()
    const done = (await rowsOf('done')).map(({ note }) => note)
    expect(done.filter((note) => /^(failed|denied|raced)/.test(note as string))).toEqual(['raced3'])
  })

  test('[DB-TX-15] conflicts of transactions are counted by the function that ran them', async () => {
    const read = async (): Promise<number> => {
      const { text } = await server.service.get('/metrics')
      return Number(/functions_conflicts_total\{function="race"\} (\d+)/.exec(text)?.[1] ?? 0)
    }
    await server.service.post('/api/db/shared/tables/notes?upsert=true', { id: 'raced', title: 'r' })
    const before = await read()
    expect((await call('race', 'counted')).body).toBe(3)
    expect(await read()).toBe(before + 2)
  })

  test('[FN-TX-1] code that outlives its transaction cannot add jobs to it; after it, jobs are added at once', async () => {
    expect((await call('late', 'late')).body).toBe('The transaction in which the job was enqueued has ended')
    await ran('late outside')
    await dispatched()
    expect((await rowsOf('done')).map(({ note }) => note)).not.toContain('late')
  })

  const faulty: readonly (readonly [problem: string, input: object, status: number])[] = [
    ['another queue', { queue: 'other' }, 404],
    ['a function that is no queue', { queue: 'commit' }, 404],
    ['an input that does not fit the schema', { input: { note: 1 } }, 400],
    ['too large an input', { input: { note: 'x'.repeat(functionJobInputChars) } }, 413],
    ['a time that is too far away', { options: { delay: '367d' } }, 400],
    ['an empty key', { options: { key: '' } }, 400],
    ['too many jobs', { count: transactionJobsMax + 1 }, 400],
  ]
  for (const [problem, input, status] of faulty)
    test(`[FN-TX-2] ${problem} refuses the transaction`, async () => {
      await dispatched()
      const before = [await jobs(), (await notes()).length]
      expect((await call('faulty', { queue: 'work', input: { note: 'faulty' }, ...input })).body).toBe(status)
      await dispatched()
      expect([await jobs(), (await notes()).length]).toEqual(before.map((count = 0) => count + 1))
    })

  const invalid: readonly (readonly [name: string, field: string, body: object | null])[] = [
    ['unchecked', 'note', null],
    ['atOnce', 'note', { input: { note: 1 } }],
    ['atOnce', 'note', { input: {} }],
    ['atOnce', 'input', { input: 'text' }],
  ]
  for (const [name, field, body] of invalid)
    test(`[FN-TX-4] an input that does not fit its queue is the answer of ${name}: ${JSON.stringify(body)}`, async () => {
      await dispatched()
      const before = [await jobs(), (await notes()).length]
      const answer = await call(name, body)
      expect(answer.status).toBe(400)
      expect(answer.body).toMatchObject({
        slug: 'invalid-input',
        message: expect.stringMatching(new RegExp(`^${field}: `)),
        data: { [field]: { code: 'type', message: expect.any(String) } },
      })
      await dispatched()
      expect([await jobs(), (await notes()).length]).toEqual(before.map((count = 0) => count + 1))
    })

  test('[FN-TX-3] no client can add jobs with a transaction', async () => {
    await dispatched()
    const before = [await jobs(), (await notes()).length]
    const job = { queue: 'work', input: { note: 'forged' }, id: crypto.randomUUID() }
    const insert = { table: 'notes', insert: { title: 'forged' } }
    for (const body of [
      { operations: [insert], jobs: [job] },
      { operations: [], jobs: [job] },
      { operations: [insert, { enqueue: job }] },
      { operations: [{ table: '_jobs', insert: { queue: 'work' } }] },
    ])
      for (const client of [server.service, server.anonymous])
        expect((await client.post('/api/db/shared/transaction', body)).status).toBeOneOf([400, 404])
    expect((await server.service.post('/api/db/shared/tables/_jobs', { queue: 'work' })).status).toBe(404)
    expect((await server.service.get('/api/db/shared/tables/_jobs')).status).toBe(404)
    expect([await jobs(), (await notes()).length]).toEqual(before)
  })
})

for (const engine of engines)
  describe(`jobs of transactions on ${engine.name}`, () => {
    test('[FN-TX-1, FN-JOB-4] they are made once over a restart, and keep their key, their unique key and their time', async () => {
      await using stack = new AsyncDisposableStack()
      const storage = await openStorage(engine, stack)
      const declared = declare([], { queues: [functionOf('work', { kind: 'queue', queue: 'work' })] })
      const first = await openNode(storage, declared)
      await first.close()
      const ids = Array.from({ length: 4 }, () => crypto.randomUUID())
      const job = (at: number, more: object) => ({ id: ids[at], queue: 'work', input: { at }, ...more })
      const send = (...jobs: object[]) =>
        first.send('POST', 'shared/transaction', { operations: [], jobs }, { functionName: 'work' })
      // The first node dispatches no more: only the change log has these.
      expect((await send(job(0, { key: 'k' }), job(1, { key: 'k', uniqueKey: 'u' }))).status).toBe(200)
      expect((await send(job(2, { uniqueKey: 'u' }), job(3, { delay: '1h' }))).status).toBe(200)
      const second = await openNode(storage, declared)
      expect((await second.runs.count(2)).map(({ id, key }) => [id, key])).toEqual([
        [ids[0] as string, 'k'],
        [ids[1] as string, 'k'],
      ])
      storage.clock.advance(3_600_000)
      await second.runs.count(3)
      await second.close()
      const third = await openNode(storage, declared)
      await third.background.finishDue()
      await third.close()
      expect(second.runs.jobs.map(({ id }) => id)).toEqual([ids[0], ids[1], ids[3]] as string[])
      expect(third.runs.jobs).toEqual([])
      expect(await third.background.parts?.admin.find(ids[2] as string)).toBeNull()
    })
  })
