/** Instances by the names of their files. */
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import fc from 'fast-check'
import { instanceIdCharsMax } from '../../../limits/api.ts'
import { instanceSearchesWaitingMax, recentInstancesMax } from '../../../limits/sqlite.ts'
import { instanceIdOf, instancePath } from './instance-database.ts'
import { createInstanceList } from './instance-list.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-instances-'))
afterAll(() => rmSync(folder, { recursive: true }))

const letters = [...'abcxyzABCXYZ019_.-']
const instanceId = fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: instanceIdCharsMax })

test('the id of an instance follows from the name of its file, and other names have none', () => {
  fc.assert(
    fc.property(instanceId, (id) => {
      const name = basename(instancePath(folder, 'space', id), '.sqlite')
      expect(instanceIdOf(name)).toBe(id)
    }),
  )
  for (const name of ['', 'Upper', 'a.b', '=', '=1', '=AA', '=me======', `${'a'.repeat(101)}`])
    expect(instanceIdOf(name)).not.toBe(name)
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), (name) => {
      const id = instanceIdOf(name)
      if (id !== null && id !== '') expect(basename(instancePath(folder, 'space', id), '.sqlite')).toBe(name)
    }),
  )
})

test('pages of thousands of instances have each once, by id, whatever else is in the folders', async () => {
  const ids = Array.from({ length: 3_000 }, (_, at) => `${at % 3 === 0 ? 'T' : 't'}-${(at * 7919) % 3_000}`).sort()
  for (const id of ids) {
    const path = instancePath(folder, 'many', id)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'x')
    if (id.endsWith('0')) for (const other of ['-wal', '-shm', '.new']) writeFileSync(path + other, '')
  }
  const opened = ids.slice(0, 100).map((id) => ({ id, writtenAtMs: null }))
  const find = createInstanceList({ folder, opened: (namespace) => (namespace === 'many' ? opened : []) })
  const search = { namespace: 'many', tables: [], text: '', match: 'prefix', caller: 'a', limit: 700 } as const
  const walked: string[] = []
  for (let hasMore = true; hasMore; ) {
    const page = await find({ ...search, after: walked.at(-1) ?? '' })
    walked.push(...page.instances.map(({ id }) => id))
    hasMore = page.hasMore
  }
  expect(walked).toEqual(ids)
  const { instances, recent } = await find({ ...search, text: '-29', match: 'contains', after: '', limit: 10 })
  expect(instances.map(({ id }) => id)).toEqual(ids.filter((id) => id.includes('-29')).slice(0, 10))
  expect(instances.every(({ writtenAtMs }) => writtenAtMs !== null && writtenAtMs > 0)).toBe(true)
  expect(recent).toHaveLength(recentInstancesMax)
  const latest = opened.at(-3)?.id as string
  utimesSync(instancePath(folder, 'many', latest), new Date(), new Date(Date.now() + 60_000))
  const again = await find({ ...search, after: '', limit: 1 })
  expect(again.recent[0]?.id).toBe(latest)
  expect((await find({ ...search, namespace: 'none', after: '' })).instances).toEqual([])
})

test('the last write of an open instance is known, whatever a checkpoint wrote to its file', async () => {
  const now = Date.now()
  const fileOf = (id: string): string => {
    const path = instancePath(folder, 'used', id)
    mkdirSync(dirname(path), { recursive: true })
    return path
  }
  for (const [at, id] of ['checkpointed', 'logged', 'written', 'tied', 'read'].entries()) {
    writeFileSync(fileOf(id), 'x')
    utimesSync(fileOf(id), new Date(), new Date(now - 1_000 * (at + 10)))
  }
  // A checkpoint of another instance ends after the last write.
  utimesSync(fileOf('checkpointed'), new Date(), new Date(now + 60_000))
  utimesSync(fileOf('logged'), new Date(), new Date(now + 60_000))
  writeFileSync(`${fileOf('logged')}-wal`, 'x')
  utimesSync(`${fileOf('logged')}-wal`, new Date(), new Date(now - 5_000))
  const opened = [
    { id: 'checkpointed', writtenAtMs: now - 3_000 },
    { id: 'written', writtenAtMs: now - 1_000 },
    { id: 'tied', writtenAtMs: now - 1_000 },
    { id: 'logged', writtenAtMs: null },
    { id: 'read', writtenAtMs: null },
  ]
  const find = createInstanceList({ folder, opened: () => opened })
  const search = {
    namespace: 'used',
    tables: [],
    text: '',
    match: 'prefix',
    caller: 'a',
    after: '',
    limit: 10,
  } as const
  const { instances, recent } = await find(search)
  expect(recent.map(({ id }) => id)).toEqual(['tied', 'written', 'checkpointed', 'logged', 'read'])
  expect(instances.find(({ id }) => id === 'checkpointed')?.writtenAtMs).toBe(now - 3_000)
  expect(instances.find(({ id }) => id === 'logged')?.writtenAtMs).toBe(now - 5_000)
})

test('searches run one after the other, and a bounded number waits', async () => {
  const find = createInstanceList({ folder, opened: () => [] })
  const search = {
    namespace: 'many',
    tables: [],
    text: 'T-1',
    match: 'prefix',
    caller: 'a',
    after: '',
    limit: 5,
  } as const
  const all = await Promise.allSettled(Array.from({ length: instanceSearchesWaitingMax + 3 }, () => find(search)))
  expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(2)
})
