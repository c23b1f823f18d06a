/** `plinth import` and `plinth export`: files of records, and a running server. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importBatchRecords, importFaultsMax } from '../../src/limits/writes.ts'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { createServer, rootKey } from '../harness/server.ts'

const schema = {
  title: { type: 'string', required: true, max: 50 },
  slug: { type: 'string', unique: true },
  price: { type: 'number' },
  sold: { type: 'boolean' },
  data: { type: 'json' },
  at: { type: 'datetime' },
  secret: { type: 'string' },
} as const
const tables = { posts: { schema, hidden: ['secret'], access: open }, loose: { access: open } } as const
const config = { databases: { shared: { tables }, team: { instance: true, tables } } } as const
const configText = `export default ${JSON.stringify(config)}`

const project = openFunctionProject(`
export const shout = before('shared.posts', ['insert', 'update'], ({ row }) => ({ ...row, title: row.title.toUpperCase() }))
`)
afterAll(() => project.remove())

const commandLine = openCommandLine([process.execPath, join(import.meta.dir, '../../src/main.ts')], 'SIGKILL')
const base = '/api/db/shared/tables/posts'

describe.each(engines.map((engine) => [engine.name, engine] as const))('records in files on %s', (_, engine) => {
  const server = createServer({ config, settings: { projectFolder: project.folder } }, engine)
  beforeAll(() => server.open())
  afterAll(() => server.close())
  beforeEach(async () => {
    writeFileSync(join(commandLine.folder, 'plinth.config.ts'), configText)
    await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
  })

  const run = (...words: readonly string[]) =>
    commandLine.run([...words, '--url', server.url], { PLINTH_SERVICE_KEY: rootKey })
  const write = (name: string, text: string): string => {
    const path = join(commandLine.folder, name)
    writeFileSync(path, text)
    return path
  }
  const list = async (path = base) => (await server.service.get(`${path}?sort=id&limit=1000`)).body.items
  const importing = (name: string, text: string, ...words: readonly string[]) =>
    run('import', 'shared.posts', write(name, text), ...words)

  test('[DB-IMPORT-7, DB-IMPORT-8] CSV is stored by its header, with types, mapping and hooks', async () => {
    const csv =
      '\uFEFFid,Titel,price,sold,data,at,Notes\r\na,"Crème, ""x""",-1.5,true,"{""n"":1}",2026-11-24,n\nb,\'=1+1,,,,,\n'
    const done = await importing('posts.csv', csv, '--map', 'Titel=title,Notes=')
    expect([done.code, done.error, done.out]).toEqual([
      0,
      '',
      'Stored 2 records in shared.posts: 2 inserted, 0 updated.\n',
    ])
    expect(await list()).toMatchObject([
      { id: 'a', title: 'CRÈME, "X"', price: -1.5, sold: true, data: { n: 1 }, at: '2026-11-24T00:00:00.000Z' },
      { id: 'b', title: '=1+1', price: null, sold: null, data: null },
    ])
  })

  test('[DB-IMPORT-8] NDJSON, JSON, an instance, and another delimiter', async () => {
    expect((await importing('a.ndjson', '{"id":"a","title":"a"}\n{"id":"b","title":"b"}\n')).code).toBe(0)
    expect((await importing('b.json', '[{"id":"c","title":"c"}]')).code).toBe(0)
    expect((await importing('c.txt', 'id;title\nd;d', '--format', 'csv', '--delimiter', ';')).code).toBe(0)
    expect((await list()).map(({ id }: { id: string }) => id)).toEqual(['a', 'b', 'c', 'd'])
    expect((await run('import', 'team/acme.loose', write('d.json', '[{"any":[1]}]'))).code).toBe(0)
    expect(await list('/api/db/team/acme/tables/loose')).toMatchObject([{ any: [1] }])
  })

  test('[DB-IMPORT-3, DB-IMPORT-9] a dry run names every faulty line and stores nothing', async () => {
    await server.service.post(base, { id: 'old', title: 'old', slug: 's' })
    const csv = 'title,slug,price\nok,a,1\n,b,2\nx,s,3\ny,c,many\nz\nlast,d,5\n'
    const done = await importing('posts.csv', csv, '--dry-run')
    expect(done.code).toBe(1)
    expect(done.error.trim().split('\n').sort()).toEqual([
      'line 3: title: is required',
      'line 4: slug: is already taken',
      'line 5: price: must be a number',
      'line 6: has 1 cells, and the header has 3',
    ])
    expect(done.out).toContain('without these records, 2 inserted, 0 updated')
    expect(await list()).toHaveLength(1)
    const clean = await importing('ok.csv', 'title\nok\n', '--dry-run')
    expect([clean.code, clean.out]).toEqual([
      0,
      'Nothing was stored in shared.posts. An import would have 1 inserted, 0 updated.\n',
    ])
    expect(await list()).toHaveLength(1)
  })

  test('[DB-IMPORT-9] a faulty record ends the import, and the run after its correction continues', async () => {
    const lines = Array.from(
      { length: importBatchRecords + 10 },
      (_, at) => `p${at},${at === importBatchRecords + 3 ? '' : at}`,
    )
    const text = `id,title\n${lines.join('\n')}\n`
    const first = await importing('posts.csv', text)
    expect([first.code, first.error]).toEqual([1, `line ${importBatchRecords + 5}: title: is required\n`])
    expect(first.out).toContain(`Stored ${importBatchRecords} records`)
    expect(await list()).toHaveLength(importBatchRecords)
    const second = await importing(
      'posts.csv',
      text.replace(`p${importBatchRecords + 3},\n`, `p${importBatchRecords + 3},x\n`),
    )
    expect([second.code, second.error]).toEqual([0, ''])
    expect(second.out).toContain(`, ${importBatchRecords} of them by an earlier run`)
    expect(await list()).toHaveLength(importBatchRecords + 10)
    const repeated = await importing('twice.csv', 'title\nsame\nsame\n')
    expect(repeated.out).toContain('2 inserted')
    expect((await importing('twice.csv', 'title\nsame\nsame\n')).out).toContain('2 of them by an earlier run')
    expect((await importing('twice.csv', 'title\nsame\nsame\n', '--again')).out).not.toContain('earlier')
    expect(await list()).toHaveLength(importBatchRecords + 14)
  })

  test('[DB-IMPORT-4, DB-IMPORT-8] upserts, and imports without hooks', async () => {
    await importing('a.csv', 'title,slug\none,s\n')
    const done = await importing('b.csv', 'title,slug\ntwo,s\nthree,t\n', '--upsert', 'slug', '--no-hooks')
    expect([done.code, done.out]).toEqual([0, 'Stored 2 records in shared.posts: 1 inserted, 1 updated.\n'])
    expect((await list()).map(({ title }: { title: string }) => title).sort()).toEqual(['three', 'two'])
    expect(server.logged()).toContain('records.hooks_skipped')
  })

  test('[DB-IMPORT-9] a run that finds too many faults gives up', async () => {
    const rows = Array.from({ length: importFaultsMax + importBatchRecords }, () => '').map(() => 'x,y')
    const done = await importing('posts.csv', `title,price\n${rows.join('\n')}\n`, '--dry-run')
    expect(done.code).toBe(1)
    expect(done.error.trim().split('\n')).toHaveLength(importFaultsMax)
    expect(done.out).toContain(`More than ${importFaultsMax} of the problems`)
  })

  test('[DB-EXPORT-1, DB-EXPORT-2] what is exported is imported again as it was', async () => {
    const values = [
      { id: 'a', title: '=cmd|x', slug: '', price: -2, sold: false, data: { n: [1, 'x'] }, secret: "'+s" },
      { id: 'b', title: ' padded\n"quoted", ', at: '2026-11-24T12:00:00.000Z', data: '-5' },
    ]
    await server.service.post(`${base}/batch/import`, { inserts: values, hooks: false })
    const stored = await list()
    for (const format of ['csv', 'ndjson', 'json']) {
      const path = join(commandLine.folder, `out.${format}`)
      expect(await run('export', 'shared.posts', path)).toEqual({ code: 0, out: '', error: '' })
      expect(existsSync(`${path}.partial`)).toBe(false)
      if (format === 'csv') expect(readFileSync(path, 'utf8')).toContain('a,\'=cmd|x,"",-2,false')
      await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
      expect((await run('import', 'shared.posts', path, '--no-hooks', '--again')).error).toBe('')
      expect(await list()).toEqual(stored)
    }
    const some = await run(
      'export',
      'shared.posts',
      '--format',
      'csv',
      '--fields',
      'id,price',
      '--filter',
      '[["id","==","a"]]',
    )
    expect([some.code, some.out]).toEqual([0, 'id,price\r\na,-2\r\n'])
    expect((await run('export', 'shared.posts', '--filter', '[["id","==","b"]]')).out).toStartWith('{"id":"b",')
  })

  const faulty: readonly (readonly [
    problem: string,
    words: readonly string[],
    text: string,
    code: number,
    error: string,
  ])[] = [
    ['an unknown column', [], 'titel\nx\n', 2, '"titel" is not a field of shared.posts.'],
    ['a column twice', ['--map', 'slug=title'], 'title,slug\nx,y\n', 2, 'Two columns are the field "title".'],
    ['text that is not CSV', [], 'title\n"open\n', 1, 'line 2: a quoted cell does not end'],
    ['another mapping', ['--map', 'x'], 'title\nx\n', 2, '--map has pairs'],
    ['a long delimiter', ['--delimiter', 'ab'], 'title\nx\n', 2, '--delimiter is one character'],
    [
      'an unknown conflict target',
      ['--upsert', 'price'],
      'title,price\nx,1\n',
      1,
      'conflictTarget must be id or a unique field',
    ],
    ['an unknown format', ['--format', 'xlsx'], 'x', 2, '"xlsx" is not a format'],
  ]
  for (const [problem, words, text, code, error] of faulty)
    test(`[DB-IMPORT-9] ${problem} is named, and nothing is stored`, async () => {
      const done = await importing('posts.csv', text, ...words)
      expect([done.code, done.error]).toEqual([code, expect.stringContaining(error)])
      expect(await list()).toEqual([])
    })

  test('[DB-IMPORT-9, DB-EXPORT-1] tables, files and keys that are not there are named', async () => {
    expect((await run('import', 'shared.post', write('a.csv', 'x'))).error).toContain('Did you mean "shared.posts"?')
    expect((await run('import', 'shared.posts', join(commandLine.folder, 'none.csv'))).error).toContain('ENOENT')
    const path = write('a.csv', 'title\nx\n')
    const denied = await commandLine.run(['import', 'shared.posts', path, '--url', server.url], {
      PLINTH_SERVICE_KEY: 'wrong-key-0123456789-0123456789',
    })
    expect([denied.code, denied.error]).toEqual([1, expect.stringContaining('PLINTH_SERVICE_KEY')])
    const latin = join(commandLine.folder, 'latin.csv')
    writeFileSync(latin, Buffer.from('title\ncaf\xe9\n', 'latin1'))
    expect((await run('import', 'shared.posts', latin)).error).toContain('is not UTF-8 text')
    const out = join(commandLine.folder, 'out.csv')
    expect((await run('export', 'shared.posts', out, '--fields', 'nothing')).error).toContain(
      '"nothing" is not a field',
    )
    expect((await run('export', 'shared.posts', out, '--filter', '[["nothing","==",1]]')).code).toBe(1)
    expect([existsSync(out), existsSync(`${out}.partial`)]).toEqual([false, false])
    expect(await list()).toEqual([])
  })
})
