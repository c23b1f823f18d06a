/** Versions of rows: what raises them, where they appear, and what `If-Match` takes. */
import { beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { type Answer, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const base = '/api/db/shared/tables/items'
const loose = '/api/db/shared/tables/loose'
const inbox = '/api/db/shared/tables/inbox'
const inSpace = (id: string): string => `/api/db/space/${id}/tables/items`
const schema = {
  title: { type: 'string' },
  rank: { type: 'number' },
  slug: { type: 'string', unique: true },
  secret: { type: 'string' },
} as const
const clock = manualClock(Date.now())
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, hidden: ['secret'], search: ['title'], access: open },
        loose: { access: open },
        inbox: { schema, access: { ...open, read: () => ({ title: 'mine' }) } },
      },
    },
    space: { instance: true, access: () => true, tables: { items: { schema, access: open } } },
  },
}

const tagOf = ({ headers }: Answer): string => headers.get('etag') ?? ''
/** The version at the start of an entity tag. */
const versionOf = (answer: Answer): number => Number(/^"(\d+)[-"]/.exec(tagOf(answer))?.[1])

const expectGrowing = (versions: readonly number[]): void => {
  for (const [at, version] of versions.entries()) expect(version).toBeGreaterThan(versions[at - 1] ?? 0)
}

describeServer('versions', { config, clock }, (server) => {
  const { anonymous, service } = server
  beforeEach(async () => {
    for (const table of [base, loose, inbox, inSpace('x')])
      while ((await service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
  })

  for (const table of [base, inSpace('x')]) {
    test(`[DB-VER-1] every write raises the version, also in one millisecond: ${table}`, async () => {
      const answers = [
        await anonymous.post(table, { id: 'a', title: 'A', slug: 's' }),
        await anonymous.patch(`${table}/a`, { title: 'B' }),
        await anonymous.patch(`${table}/a`, { title: 'B' }),
        await anonymous.post(`${table}?upsert=true`, { id: 'a', rank: 1 }),
        await anonymous.post(`${table}?upsert=true&conflictTarget=slug`, { slug: 's', rank: 2 }),
        await service.patch(`${table}/a`, { secret: 'x' }),
      ]
      expectGrowing(answers.map(versionOf))
      const read = await anonymous.get(`${table}/a`)
      expect(versionOf(read)).toBe(versionOf(answers.at(-1) as Answer))
      await anonymous.post(`${table}/batch`, { updates: [{ id: 'a', data: { rank: 3 } }] })
      const afterBatch = versionOf(await anonymous.get(`${table}/a`))
      await service.post(`${table}/batch-by-filter`, { action: 'update', data: { rank: 4 } })
      const afterFilter = versionOf(await anonymous.get(`${table}/a`))
      const removed = await anonymous.delete(`${table}/a`)
      expect(tagOf(removed)).toBe(`"${versionOf(removed)}"`)
      expectGrowing([versionOf(read), afterBatch, afterFilter, versionOf(removed)])
    })
  }

  test('[DB-VER-1] each answer has the tag that a read gets, for every caller', async () => {
    for (const client of [anonymous, service]) {
      const writes = [
        () => client.post(`${base}?upsert=true`, { id: 'a', title: 'A' }),
        () => client.patch(`${base}/a`, { title: 'B' }),
      ]
      for (const write of writes) expect(tagOf(await write())).toBe(tagOf(await client.get(`${base}/a`)))
    }
    await service.patch(`${base}/a`, { secret: 'x' })
    const [mine, theirs] = [await anonymous.get(`${base}/a`), await service.get(`${base}/a`)]
    expect(versionOf(mine)).toBe(versionOf(theirs))
    // Another body has another tag, so that no cache takes one for the other.
    const other = await anonymous.get(`${base}/a?fields=title`)
    expect(new Set([tagOf(mine), tagOf(theirs), tagOf(other)]).size).toBe(3)
    for (const [path, tag, status] of [
      [`${base}/a`, tagOf(mine), 304],
      [`${base}/a`, tagOf(theirs), 200],
      [`${base}/a`, tagOf(other), 200],
      [`${base}/a`, `"${versionOf(mine)}"`, 200],
      [`${base}/a?fields=title`, tagOf(other), 304],
    ] as const)
      expect((await anonymous.get(path, { 'if-none-match': tag })).status).toBe(status)
  })

  test('[DB-VER-1, RULE-17] an answer that shows no record has no version', async () => {
    const hidden = await anonymous.post(inbox, { id: 'a', title: 'theirs' })
    expect([hidden.status, tagOf(hidden)]).toEqual([201, ''])
    const shown = await anonymous.post(inbox, { id: 'b', title: 'mine' })
    expect(versionOf(shown)).toBeGreaterThan(0)
    const left = await anonymous.patch(`${inbox}/b`, { title: 'theirs' })
    expect([left.status, tagOf(left)]).toEqual([200, ''])
  })

  const forms: readonly [string, (answer: Answer, fields: Answer) => string][] = [
    ['the tag', tagOf],
    ['the tag of a selection of fields', (_, fields) => tagOf(fields)],
    ['the version', (answer) => `"${versionOf(answer)}"`],
    ['the version without quotes', (answer) => String(versionOf(answer))],
    ['one of a list', (answer) => `"1", "${versionOf(answer)}"`],
  ]
  for (const [name, form] of forms)
    test(`[DB-VER-2] If-Match takes ${name}`, async () => {
      await anonymous.post(base, { id: 'a', title: 'A' })
      const condition = async () => ({
        'if-match': form(await anonymous.get(`${base}/a`), await anonymous.get(`${base}/a?fields=rank`)),
      })
      const stale = await condition()
      expect((await anonymous.patch(`${base}/a`, { title: 'B' }, await condition())).status).toBe(200)
      const before = await server.dump(base)
      expectRefusal(await anonymous.patch(`${base}/a`, { title: 'C' }, stale), 412)
      expectRefusal(await anonymous.delete(`${base}/a`, stale), 412)
      expect(await server.dump(base)).toEqual(before)
      expect((await anonymous.delete(`${base}/a`, await condition())).status).toBe(200)
    })

  test('[DB-VER-2] nothing else names a version', async () => {
    const version = versionOf(await anonymous.post(base, { id: 'a', title: 'A' }))
    const others = ['', '0', `${version}0`, `"${version}0"`, `W/"${version}"`, `"x${version}"`, `${version}-`, 'null']
    for (const tag of [...others, `"${version + 1}"`, `"${version - 1}"`, `-${version}`, `${version}.0`])
      expectRefusal(await anonymous.patch(`${base}/a`, { title: 'B' }, { 'if-match': tag }), 412)
    expect(versionOf(await anonymous.get(`${base}/a`))).toBe(version)
  })

  const insertions: readonly [string, (table: string) => Promise<Answer>][] = [
    ['an insert', (table) => anonymous.post(table, { id: 'a', title: 'A' })],
    ['an upsert', (table) => anonymous.post(`${table}?upsert=true`, { id: 'a', title: 'A' })],
    [
      'an upsert by another field',
      (table) => anonymous.post(`${table}?upsert=true&conflictTarget=slug`, { id: 'a', slug: 's' }),
    ],
    ['a batch of one', (table) => anonymous.post(`${table}/batch`, { inserts: [{ id: 'a' }] })],
    ['a batch', (table) => anonymous.post(`${table}/batch`, { inserts: [{ id: 'b' }, { id: 'a' }, { title: 'C' }] })],
    [
      'a batch of upserts',
      (table) => anonymous.post(`${table}/batch?upsert=true`, { inserts: [{ id: 'b' }, { id: 'a' }] }),
    ],
  ]
  for (const table of [base, inSpace('x')])
    for (const [name, insert] of insertions)
      test(`[DB-VER-3] ${name} with the id of a removed record continues its versions, even under a clock that went back: ${table}`, async () => {
        const now = clock.now()
        const versions: number[] = []
        for (const back of [0, 0, 3_600_000]) {
          clock.set(now - back)
          expect((await insert(table)).status).toBeLessThan(300)
          versions.push(versionOf(await anonymous.get(`${table}/a`)))
          versions.push(versionOf(await anonymous.patch(`${table}/a`, { rank: 1 })))
          versions.push(versionOf(await anonymous.delete(`${table}/a`)))
          await service.post(`${table}/batch-by-filter`, { action: 'delete' })
        }
        clock.set(now)
        expectGrowing(versions)
      })

  test('[DB-VER-3] instances do not share versions', async () => {
    const now = clock.now()
    await anonymous.post(inSpace('one'), { id: 'a' })
    const removed = versionOf(await anonymous.delete(`${inSpace('one')}/a`))
    clock.set(now - 1000)
    const other = versionOf(await anonymous.post(inSpace('other'), { id: 'a' }))
    clock.set(now)
    expect(other).toBeLessThan(removed)
  })

  test('[DB-VER-3] of inserts and removals of one id at once, each takes a later version than the one before', async () => {
    const answers = await Promise.all(
      times(60, (n) => (n % 2 === 0 ? anonymous.post(base, { id: 'a', rank: n }) : anonymous.delete(`${base}/a`))),
    )
    const versions = answers.filter(({ status }) => status < 300).map(versionOf)
    expect(new Set(versions).size).toBe(versions.length)
    const final = await anonymous.get(`${base}/a`)
    const last =
      final.status === 200 ? versionOf(final) : Math.max(...answers.filter(({ body }) => body.ok).map(versionOf))
    expect(last).toBe(Math.max(...versions))
  })

  test('[DB-VER-4] versions grow after a restart, and while the clock is an hour behind', async () => {
    const now = clock.now()
    const versions = [versionOf(await anonymous.post(base, { id: 'a' }))]
    clock.set(now - 3_600_000)
    versions.push(versionOf(await anonymous.patch(`${base}/a`, { rank: 1 })))
    await server.restart()
    versions.push(versionOf(await anonymous.patch(`${base}/a`, { rank: 2 })))
    clock.set(now)
    versions.push(versionOf(await anonymous.patch(`${base}/a`, { rank: 3 })))
    expectGrowing(versions)
  })

  test('[DB-VER-5] the version is no field of the record', async () => {
    for (const body of [
      { id: 'a', _version: 1 },
      { id: 'a', title: 'A', _version: null },
    ])
      expectRefusal(await anonymous.post(base, body), 400, '_version')
    await anonymous.post(base, { id: 'a', title: 'A' })
    expectRefusal(await anonymous.patch(`${base}/a`, { _version: 1 }), 400, '_version')
    for (const params of [{ filter: [['_version', '>', 0]] }, { sort: '_version:asc' }, { fields: '_version' }])
      expectRefusal(await service.get(base + query(params)), 400)
    for (const client of [anonymous, service])
      for (const path of [`${base}/a`, base, `${base}?after=`, `${base}?versions=1`, `${base}/search?q=a`])
        expect((await client.get(path)).text).not.toContain('_version')
  })

  test('[DB-VER-5] a field of that name in a table without a schema is an ordinary one', async () => {
    const record = { id: 'a', _version: 'mine', other: 1 }
    const inserted = await anonymous.post(loose, record)
    expect(inserted.body).toMatchObject(record)
    expect(versionOf(inserted)).toBeGreaterThan(0)
    await anonymous.patch(`${loose}/a`, { other: 2 })
    for (const path of [`${loose}/a`, `${loose}/a?fields=_version,other`])
      expect((await anonymous.get(path)).body).toMatchObject({ _version: 'mine', other: 2 })
    const { body } = await anonymous.get(loose + query({ filter: [['_version', '==', 'mine']] }))
    expect(body.items).toMatchObject([{ _version: 'mine', other: 2 }])
    await anonymous.patch(`${loose}/a`, { _version: { $op: 'deleteField' } })
    expect(Object.keys((await anonymous.get(`${loose}/a`)).body)).toEqual(['id', 'other', 'createdAt', 'updatedAt'])
  })
})
