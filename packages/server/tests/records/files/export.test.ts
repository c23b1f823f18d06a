/** GET /api/db/{namespace}/export/{table}: records as a streamed file. */
import { beforeAll, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { exportPageRecords } from '../../../src/limits/writes.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { openAdministrator } from '../../harness/dashboard/administrators.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const clock = manualClock()
const unlimited = { requests: 10_000_000 }
const notes = {
  schema: { text: { type: 'text' }, views: { type: 'number' }, meta: { type: 'json' }, secret: { type: 'string' } },
  hidden: ['secret'],
  access: open,
} as const
const config = {
  databases: {
    shared: { tables: { notes, many: { schema: { n: { type: 'number' } }, access: open }, loose: { access: open } } },
    space: { instance: true, access: () => true, tables: { notes } },
  },
  serviceKeys: [{ name: 'writer', key: 'key-of-the-writer-0123456789', scopes: ['db:table:*:write'] }],
  rateLimits: { auth: unlimited, signin: unlimited, db: unlimited },
} as const

const path = (table: string, parameters: object = {}): string =>
  `/api/db/shared/export/${table}${query({ format: 'csv', ...parameters })}`
const texts = ['=1+1', '+1', '-1', '@a', '\tx', '\rx', "'=1", 'a "quoted", text', 'line\nbreak', '', 'plain']
const many = 3 * exportPageRecords + 7

describeServer('exports of records', { config, clock }, (server) => {
  beforeAll(async () => {
    const rows = texts.map((text, at) => ({ id: `n${String(at).padStart(2, '0')}`, text, views: -at, secret: 'hush' }))
    const answers = [
      await server.service.post('/api/db/shared/tables/notes/batch', { inserts: rows }),
      await server.service.post('/api/db/space/acme/tables/notes', { id: 'n1', text: 'of acme' }),
      await server.service.post('/api/db/shared/tables/loose', { id: 'l1', any: { thing: 1 } }),
    ]
    for (let at = 0; at < many; at += 500)
      answers.push(
        await server.service.post('/api/db/shared/tables/many/batch', {
          inserts: Array.from({ length: Math.min(500, many - at) }, (_, next) => ({
            id: `m${String(at + next).padStart(6, '0')}`,
            n: at + next,
          })),
        }),
      )
    for (const { status } of answers) expect(status).toBeLessThan(300)
  })

  test('[DB-EXPORT-3, DB-EXPORT-4] CSV has no cell that a spreadsheet runs, and no hidden field', async () => {
    const answer = await server.service.get(path('notes'))
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="notes.csv"')
    const [head = '', first = ''] = answer.text.split('\r\n')
    expect(head).toBe('id,text,views,meta,createdAt,updatedAt')
    expect(first).toStartWith("n00,'=1+1,0,,")
    for (const text of ["'+1", "'-1", "'@a", '"\'\tx"', '"\'\rx"', "''=1", '"a ""quoted"", text"', '"line\nbreak"'])
      expect(answer.text).toContain(`,${text},`)
    // Numbers are no formulas.
    expect(answer.text).toContain(',-1,,')
    expect(answer.text).not.toContain('hush')
    const named = await server.service.get(path('notes', { fields: 'id,secret', filter: '[["id","==","n00"]]' }))
    expect(named.text).toBe('id,secret\r\nn00,hush\r\n')
  })

  test('[DB-EXPORT-4] NDJSON and JSON have the records, in order, with filter and fields', async () => {
    const ndjson = await server.service.get(path('notes', { format: 'ndjson', fields: 'id,views', sort: 'views:asc' }))
    expect(ndjson.headers.get('content-type')).toBe('application/x-ndjson')
    const lines = ndjson.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines[0]).toEqual({ id: 'n10', views: -10 })
    expect(lines).toHaveLength(texts.length)
    const filter = '[["text","==","plain"]]'
    const all = JSON.parse((await server.service.get(path('notes', { format: 'json', filter }))).text)
    expect(all).toMatchObject([{ id: 'n10', text: 'plain', meta: null }])
    expect(Object.keys(all[0])).not.toContain('secret')
    expect(JSON.parse((await server.service.get(path('loose', { format: 'json' }))).text)).toMatchObject([
      { id: 'l1', any: { thing: 1 } },
    ])
    const none = await server.service.get(path('notes', { format: 'json', filter: '[["text","==","none"]]' }))
    expect(JSON.parse(none.text)).toEqual([])
    const ofAcme = await server.service.get('/api/db/space/acme/export/notes?format=csv&fields=text')
    expect(ofAcme.text).toBe('text\r\nof acme\r\n')
  })

  test('[DB-EXPORT-4] every record is exported once, over several pages', async () => {
    const { text } = await server.service.get(path('many', { fields: 'n' }))
    expect(text).toBe(`n\r\n${Array.from({ length: many }, (_, n) => `${n}\r\n`).join('')}`)
  })

  test('[DB-EXPORT-4] what is invalid or not permitted is refused before the first byte', async () => {
    expectRefusal(await server.service.get(path('notes', { format: 'xlsx' })), 400)
    expectRefusal(await server.service.get(path('notes', { fields: 'none' })), 400)
    expectRefusal(await server.service.get(path('notes', { filter: '[["none","==",1]]' })), 400)
    expectRefusal(await server.service.get(path('notes', { sort: 'none:asc' })), 400)
    expectRefusal(await server.service.get(path('none')), 404)
    expectRefusal(await server.withKey('key-of-the-writer-0123456789').get(path('notes')), 401)
    expectRefusal(await server.as('ann').get(path('notes')), 403)
    expectRefusal(await server.anonymous.get(path('notes')), 401)
  })

  test('[DB-EXPORT-5] administrators need a recent sign-in, and each export leaves an entry', async () => {
    const viewer = await openAdministrator(server, 'viewer')
    const filter = '[["secret","==","hush"]]'
    expect((await viewer.client.get(path('notes', { filter, fields: 'id' }))).status).toBe(200)
    const [entry] = (await server.service.get('/api/audit?action=records.export&limit=1')).body.items
    expect(entry).toMatchObject({
      actor: `admin:${viewer.id}`,
      target: '/api/db/shared/export/notes',
      after: { format: 'csv', fields: 'id', filter: [['secret', '==', '[hidden]']] },
    })
    expect(JSON.stringify(entry)).not.toContain('hush')
    await server.elapse(10 * 60_000 + 1)
    const late = await viewer.client.get(path('notes'))
    expectRefusal(late, 403)
    expect(late.body.slug).toBe('sign-in-again')
  })
})
