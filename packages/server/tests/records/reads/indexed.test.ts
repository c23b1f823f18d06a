/** Texts too long for an index: an engine with such a limit refuses them and names the field. */
import { beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { Answer } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { codesOf } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const base = '/api/db/shared/tables/items'
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: {
            slug: { type: 'string', unique: true },
            label: { type: 'text' },
            region: { type: 'text' },
            note: { type: 'text' },
          },
          indexes: [{ fields: ['label', 'region'] }],
          access: open,
        },
      },
    },
  },
} as const

/** Text that does not compress well. */
const longText = (seed: string): string =>
  times(300, (n) => createHash('sha256').update(`${seed} ${n}`).digest('base64url')).join('')

const half = longText('half').slice(0, 2000)

describeServer('texts of indexed fields', { config }, (server) => {
  const added = { id: 'added', note: 'added' }
  const post = (path: string, body: object) => server.anonymous.post(`${base}${path}`, body)

  beforeEach(async () => {
    await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
    expect((await post('', { id: 'there', slug: 'there', note: 'before' })).status).toBe(201)
  })

  const long = (name: string) => ({ [name]: longText(name) })
  type Write = readonly [what: string, name: string, field: string, write: () => Promise<Answer>]
  const writes: readonly Write[] = [
    ['an insert', 'slug', 'slug', () => post('', long('slug'))],
    ['an insert', 'label', 'label', () => post('', long('label'))],
    ['an insert of two in one index', 'label', 'label', () => post('', { label: half, region: half.slice(1) })],
    ['an upsert', 'slug', 'slug', () => post('?upsert=true', { id: 'new', ...long('slug') })],
    [
      'an upsert',
      'label',
      'label',
      () => post('?upsert=true&conflictTarget=slug', { slug: 'there', ...long('label') }),
    ],
    ['an update', 'slug', 'slug', () => server.anonymous.patch(`${base}/there`, long('slug'))],
    ['an update', 'label', 'label', () => server.anonymous.patch(`${base}/there`, long('label'))],
    ['a batch', 'slug', 'inserts[1].slug', () => post('/batch', { inserts: [added, long('slug')] })],
    [
      'a batch',
      'region',
      'updates[0].region',
      () => post('/batch', { inserts: [added], updates: [{ id: 'there', data: long('region') }] }),
    ],
    ['a change by filter', 'label', 'label', () => post('/batch-by-filter', { action: 'update', data: long('label') })],
  ]
  for (const [what, name, field, write] of writes)
    test(`[DB-TABLE-17, ERR-7] ${what} with a long ${name} is stored, or refused without a change`, async () => {
      const before = await server.dump(base)
      const answer = await write()
      if (answer.status < 300) return expect((await server.dump(base))[base]).not.toEqual(before[base])
      expect(codesOf(expectRefusal(answer, 400).data)).toEqual({ [field]: 'max' })
      expect(await server.dump(base)).toEqual(before)
    })

  test('[DB-TABLE-17, DB-TABLE-15] a text without an index may have any length', async () => {
    const note = longText('note')
    const updated = await server.anonymous.patch(`${base}/there`, { note, slug: 's'.repeat(600) })
    expect(updated.status).toBe(200)
    expect(updated.body.note).toEqual(note)
  })
})
