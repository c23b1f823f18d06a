/** Rules over other records hold under concurrent writes of those records. */
import { expect, test } from 'bun:test'
import { and, exists, field, not } from '../../../src/config/define.ts'
import { query } from '../../harness/client.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const bookings = '/api/db/shared/tables/bookings'
const admins = '/api/db/shared/tables/admins'
const notes = '/api/db/space/one/tables/notes'

const isFree = () => not(exists('bookings', { slot: field('slot') }))
const isOpen = () => not(exists('notes', { title: field('title') }))
const anotherStays = () => exists('admins', and({ team: field('team') }, not({ id: field('id') })))
const config = {
  databases: {
    shared: {
      tables: {
        bookings: { schema: { slot: { type: 'string' } }, access: { read: true, insert: isFree } },
        admins: { schema: { team: { type: 'string' } }, access: { read: true, delete: anotherStays } },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema: { title: { type: 'string' } }, access: { read: true, insert: isOpen } } },
    },
  },
} as const

const statusesOf = (answers: readonly { status: number }[]): number[] => answers.map(({ status }) => status).sort()

describeServer('rules over other records, under concurrent writes', { config }, (server) => {
  const alice = server.as('alice')

  test('[RULE-16] exactly one of concurrent inserts that require a free slot succeeds', async () => {
    for (const [table, name] of [
      [bookings, 'slot'],
      [notes, 'title'],
    ] as const)
      for (const value of ['first', 'second', 'third']) {
        const answers = await Promise.all(times(30, () => alice.post(table, { [name]: value })))
        expect(statusesOf(answers)).toEqual([201, ...times(29, () => 403)])
        const count = `${table}/count${query({ filter: [[name, '==', value]] })}`
        expect((await alice.get(count)).body.total).toBe(1)
      }
  })

  test('[RULE-16] one of two concurrent deletes that require the other record is refused', async () => {
    const inserts = times(8, (n) => [`a${n}`, `b${n}`].map((id) => ({ id, team: `t${n}` }))).flat()
    expect((await server.service.post(`${admins}/batch`, { inserts })).status).toBe(200)
    const answers = await Promise.all(inserts.map(({ id }) => alice.delete(`${admins}/${id}`)))
    expect(statusesOf(answers)).toEqual([...times(8, () => 200), ...times(8, () => 403)])
    const { items } = (await alice.get(admins)).body
    expect(items.map(({ team }: { team: string }) => team).sort()).toEqual(times(8, (n) => `t${n}`))
  })
})
