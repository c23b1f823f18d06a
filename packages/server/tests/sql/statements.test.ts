/** Single statements on SQL databases: parameters, results and refused statements. On every engine. */
import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Answer } from '../harness/client.ts'
import { engines } from '../harness/engines.ts'
import { exec } from '../harness/resources/sql.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const scopes = [
  'sql:database:main:exec',
  'sql:database:*:exec',
  'sql:database:tight:exec',
  'db:table:*:*',
  'kv:namespace:main:write',
]
const config = {
  sql: { main: {}, tight: { maxRows: 3 } },
  serviceKeys: scopes.map((scope) => ({ name: scope, key: `a-key-with-${scope}`, scopes: [scope] })),
}

/** The rows of a statement; throws unless it succeeds. */
async function rowsOf(server: TestServer, query: string, params?: unknown, database?: string): Promise<unknown[]> {
  const { status, body, text } = await exec(server, query, params, database)
  if (status !== 200) throw new Error(`${query}: ${status} ${text}`)
  return body.results
}

async function expectRefused(answer: Promise<Answer>, status = 400): Promise<string> {
  const { status: found, body, text } = await answer
  if (found !== status) throw new Error(`expected ${status}, got ${found}: ${text}`)
  expect(body.code).toBe(status)
  expect(body.message).toBeString()
  expect(body.slug).toBeString()
  return body.message
}

describeServer('SQL', { config }, (server) => {
  const isSqlite = (): boolean => server.settings().databaseUrl === null
  const run = (query: string, params?: unknown) => rowsOf(server, query, params)

  beforeAll(async () => {
    await run('CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, stars INTEGER)')
  })

  test('[SQL-1, SQL-12] a statement returns rows as objects and counts of its effects', async () => {
    const inserted = await exec(server, 'INSERT INTO notes (id, title, stars) VALUES (?, ?, ?), (?, ?, ?)', [
      ...[1, 'one', 5],
      ...[2, "it's two", null],
    ])
    expect(inserted.status).toBe(200)
    expect(inserted.body).toEqual({
      results: [],
      meta: { changes: 2, duration: expect.any(Number), rows_read: expect.any(Number), rows_written: 2 },
    })
    const read = await exec(server, 'SELECT id, title, stars FROM notes ORDER BY id')
    expect(read.body).toEqual({
      results: [
        { id: 1, title: 'one', stars: 5 },
        { id: 2, title: "it's two", stars: null },
      ],
      meta: { changes: 0, duration: expect.any(Number), rows_read: 2, rows_written: 0 },
    })
    expect(read.headers.get('content-type')).toBe('application/json')
    const changed = await exec(server, 'UPDATE notes SET stars = 4 WHERE id < 3')
    expect(changed.body.meta).toMatchObject({ changes: 2, rows_written: 2 })
    const none = await exec(server, 'DELETE FROM notes WHERE id > 3')
    expect(none.body.meta).toMatchObject({ changes: 0, rows_written: 0 })
    expect(await run('DELETE FROM notes WHERE id = 2 RETURNING title')).toEqual([{ title: "it's two" }])
  })

  test('[SQL-2] comments and semicolons can follow a statement; a second statement is refused', async () => {
    expect(await run('SELECT 1 AS a; -- done')).toEqual([{ a: 1 }])
    expect(await run('/* first */ SELECT 1 AS a /* ; */ ;;')).toEqual([{ a: 1 }])
    expect(await run("SELECT 'a;b' AS a")).toEqual([{ a: 'a;b' }])
    for (const query of [
      'SELECT 1; SELECT 2',
      'SELECT 1; DELETE FROM notes',
      'DELETE FROM notes; SELECT 1 --',
      "INSERT INTO notes (id, title) VALUES (90, 'x'); INSERT INTO notes (id, title) VALUES (91, 'x')",
    ])
      await expectRefused(exec(server, query))
    expect(await run('SELECT count(*) AS n FROM notes WHERE id >= 90')).toEqual([{ n: 0 }])
    expect(await run('SELECT count(*) AS n FROM notes WHERE id = 1')).toEqual([{ n: 1 }])
  })

  test('[SQL-3] an empty query, one that is not a string, and one that is too long are refused', async () => {
    for (const query of ['', '  ', ';', '-- nothing', '/* nothing', 'SELECT 1\0', '\uD800', 5, null, ['SELECT 1'], {}])
      await expectRefused(exec(server, query))
    await expectRefused(server.service.post('/api/sql/main', {}))
    await expectRefused(exec(server, `SELECT 1 -- ${'x'.repeat(102_400)}`))
  })

  test('[SQL-4] ? and ?1 are parameters by order or number, except in strings and comments', async () => {
    const typed = isSqlite() ? '?' : '?::int'
    expect(await run(`SELECT ${typed} AS a, ${typed} AS b`, [1, 2])).toEqual([{ a: 1, b: 2 }])
    expect(await run(`SELECT ${typed.replace('?', '?2')} AS a, ${typed.replace('?', '?1')} AS b`, [1, 2])).toEqual([
      { a: 2, b: 1 },
    ])
    expect(await run(`SELECT title AS "a?", '?' AS b /* ? */ FROM notes WHERE id = ? -- ?`, [1])).toEqual([
      { 'a?': 'one', b: '?' },
    ])
    expect(await run('SELECT id FROM notes WHERE title = ? OR title = ?1', ["' OR 1=1 --"])).toEqual([])
  })

  test('[SQL-4] there must be one value per parameter: a string, a number, a boolean or null', async () => {
    for (const [query, params] of [
      ['SELECT ?', []],
      ['SELECT ?', undefined],
      ['SELECT 1', [1]],
      ['SELECT ?3', [1]],
      ['SELECT ?0', [1]],
      ['SELECT ?', [{}]],
      ['SELECT ?', [[1]]],
      ['SELECT ?', 'x'],
      ['SELECT ?', { 0: 1 }],
      ['SELECT :a', [1]],
      ['SELECT @a', [1]],
      ['SELECT $a', [1]],
      ['SELECT $1', [1]],
      [`SELECT ${Array(1001).fill('?').join()}`, Array(1001).fill(1)],
    ] as const)
      await expectRefused(exec(server, query, params))
    const cast = isSqlite() ? '' : '::text'
    expect(await run(`SELECT ?${cast} AS a, ?${cast} AS b`, [null, 'é\n"'])).toEqual([{ a: null, b: 'é\n"' }])
  })

  test('[SQL-5] numbers that JavaScript cannot represent are returned as strings, bytes as base64', async () => {
    const blob = isSqlite() ? "x'00ff41'" : "'\\x00ff41'::bytea"
    const infinite = isSqlite() ? '9e999' : "'Infinity'::float8"
    expect(
      await run(`SELECT 9007199254740993 AS big, -9223372036854775807 AS least, 9007199254740991 AS exact,
        ${blob} AS bytes, ${infinite} AS infinite, 1.5 AS half, NULL AS empty`),
    ).toEqual([
      {
        big: '9007199254740993',
        least: '-9223372036854775807',
        exact: 9007199254740991,
        bytes: 'AP9B',
        infinite: 'Infinity',
        half: 1.5,
        empty: null,
      },
    ])
  })

  test('[SQL-6] of columns with the same name the last is returned, and columns can have any name', async () => {
    expect(await run('SELECT 1 AS a, 2 AS b, 3 AS a')).toEqual([{ a: 3, b: 2 }])
    const { text } = await exec(server, 'SELECT 1 AS "__proto__", 2 AS "a\u0001""b"')
    expect(text).toContain('"__proto__":1')
    expect(text).toContain('"a\\u0001\\"b":2')
  })

  test('[SQL-7] an invalid statement is 400 with the message of the database', async () => {
    expect(await expectRefused(exec(server, 'SELEC 1'))).toMatch(/selec/i)
    expect(await expectRefused(exec(server, 'SELECT * FROM nowhere'))).toContain('nowhere')
    expect(await expectRefused(exec(server, 'SELECT nothing FROM notes'))).toContain('nothing')
    expect(await expectRefused(exec(server, "INSERT INTO notes (id, title) VALUES (1, 'again')"))).toMatch(/unique/i)
    expect(await expectRefused(exec(server, 'INSERT INTO notes (id) VALUES (77)'))).toMatch(/null/i)
    expect(await run('SELECT count(*) AS n FROM notes WHERE id = 77')).toEqual([{ n: 0 }])
  })

  test('[SQL-8] a statement that returns more rows than the limit is refused and changes nothing', async () => {
    const tight = (query: string) => exec(server, query, undefined, 'tight')
    const numbers = (most: number) =>
      `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${most})`
    await rowsOf(server, 'CREATE TABLE t (x INTEGER)', undefined, 'tight')
    expect((await tight(`${numbers(3)} SELECT x FROM c`)).body.results).toEqual([{ x: 1 }, { x: 2 }, { x: 3 }])
    await expectRefused(tight(`${numbers(4)} SELECT x FROM c`))
    await expectRefused(tight(`${numbers(4)} INSERT INTO t SELECT x FROM c RETURNING x`))
    expect((await tight('SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 0 }])
    expect((await tight(`${numbers(4)} INSERT INTO t SELECT x FROM c`)).body.meta.changes).toBe(4)

    expect((await run(`${numbers(10_000)} SELECT x FROM c`)).length).toBe(10_000)
    expect(await expectRefused(exec(server, `${numbers(10_001)} SELECT x FROM c`))).toContain('10000 rows')
    // An endless query: only rows up to the limit are computed.
    await expectRefused(exec(server, 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c'))
  })

  test('[SQL-9] rows that exceed the size of a response are refused', async () => {
    const wide = isSqlite() ? 'hex(zeroblob(4000000))' : "repeat('0', 8000000)"
    expect((await run(`SELECT length(${wide}) AS n`)) as unknown).toEqual([{ n: 8_000_000 }])
    await expectRefused(exec(server, `SELECT ${wide} AS a, ${wide} AS b`))
    expect(await run('SELECT 1 AS a')).toEqual([{ a: 1 }])
  })

  test('[SQL-10] transactions over several requests are refused', async () => {
    for (const query of [
      'BEGIN',
      'begin immediate',
      'START TRANSACTION',
      'COMMIT',
      'END',
      'ROLLBACK',
      'ABORT',
      'SAVEPOINT a',
      'RELEASE a',
      'ROLLBACK TO a',
      '/* */ BEGIN',
      "PREPARE TRANSACTION 'x'",
    ])
      await expectRefused(exec(server, query))
    await expectRefused(exec(server, "INSERT INTO notes (id, title) VALUES (60, 'x'), (60, 'y')"))
    expect(await run('SELECT count(*) AS n FROM notes WHERE id = 60')).toEqual([{ n: 0 }])
  })

  test('[SQL-11] an undeclared database is 404, and a malformed name 404 or 400', async () => {
    for (const name of [
      'nope',
      'MAIN',
      '__proto__',
      'constructor',
      '..%2fmain',
      'main.sqlite',
      '%00',
      'a'.repeat(300),
    ]) {
      const { status } = await exec(server, 'SELECT 1', undefined, name)
      if (status !== 404 && status !== 400) throw new Error(`${name} returned ${status}`)
    }
    expect((await exec(server, 'SELECT 1', undefined, 'nope')).status).toBe(404)
  })

  test('[SQL-25] only a service key with the scope of the database is admitted; others change nothing', async () => {
    const body = { query: "INSERT INTO notes (id, title) VALUES (500, 'x')" }
    const statusFor = async (client: typeof server.service, name = 'main') =>
      (await client.post(`/api/sql/${name}`, body)).status
    expect(await statusFor(server.anonymous)).toBe(401)
    expect(await statusFor(server.as('alice'))).toBe(403)
    expect(await statusFor(server.as({ id: 'alice', role: 'admin' }), 'nope')).toBe(403)
    expect(await statusFor(server.withKey('wrong'))).toBe(401)
    for (const scope of ['sql:database:tight:exec', 'db:table:*:*', 'kv:namespace:main:write'])
      expect({ scope, status: await statusFor(server.withKey(`a-key-with-${scope}`)) }).toEqual({ scope, status: 401 })
    expect(await run('SELECT count(*) AS n FROM notes WHERE id = 500')).toEqual([{ n: 0 }])
    for (const scope of ['sql:database:main:exec', 'sql:database:*:exec'])
      expect({ scope, status: await statusFor(server.withKey(`a-key-with-${scope}`)) }).toEqual({
        scope,
        status: scope.includes('main') ? 200 : 400,
      })
  })

  test('[SQL-7] random statements are 200 or 400', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...[
          'SELECT',
          '*',
          'FROM',
          'notes',
          'WHERE',
          '(',
          ')',
          "'",
          '"',
          ';',
          '?',
          '?1',
          '--',
          '/*',
          '*/',
          ',',
          '1',
          'NULL',
        ],
        ...[
          'WITH',
          'INSERT INTO',
          'VALUES',
          'DELETE',
          'EXPLAIN',
          '1e999',
          "x'0'",
          '$$',
          'CAST(',
          'AS',
          '\u0000',
          '[',
          '`',
        ],
      ),
      fc.string({ maxLength: 5 }),
    )
    const value = fc.oneof(fc.string({ maxLength: 5 }), fc.double(), fc.integer(), fc.boolean(), fc.constant(null))
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), fc.array(value, { maxLength: 2 }), async (pieces, params) => {
        const { status, text } = await exec(server, pieces.join(' '), params)
        if (status !== 200 && status !== 400) throw new Error(`${pieces.join(' ')} returned ${status}: ${text}`)
      }),
      { numRuns: 150 },
    )
  })

  test('[SQL-13] a statement cannot read tables of another database', async () => {
    await run('CREATE TABLE only_in_main (a INTEGER)')
    const reaching = ['only_in_main', 'main.only_in_main', '_sql_main.only_in_main', '"_sql_main"."only_in_main"']
    for (const name of isSqlite() ? reaching.slice(0, 1) : reaching)
      await expectRefused(exec(server, `SELECT * FROM ${name}`, undefined, 'tight'))
  })
})

describeServer(
  'SQL of SQLite',
  { config },
  (server) => {
    const run = (query: string, params?: unknown) => rowsOf(server, query, params)

    test('[SQL-12] rows written by triggers count as written, not as changes', async () => {
      await run('CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT)')
      await run('CREATE TABLE log (at TEXT)')
      await run(
        "CREATE TRIGGER noted AFTER INSERT ON notes BEGIN INSERT INTO log VALUES ('x'); INSERT INTO log VALUES ('y'); END",
      )
      const { body } = await exec(server, "INSERT INTO notes (id, title) VALUES (50, 'a')")
      expect(body.meta).toMatchObject({ changes: 1, rows_written: 3 })
    })

    test('[SQL-2, SQL-4] white space can precede a statement, and parameter numbers can be omitted', async () => {
      expect(await run(';; SELECT ?3 AS a, ?1 AS b;', [1, 2, 3])).toEqual([{ a: 3, b: 1 }])
      expect(await run('\uFEFF-- x\nSELECT ?2 AS a, ? AS b', [1, 2, 3])).toEqual([{ a: 2, b: 3 }])
    })

    test('[SQL-5] integers stay integers, and booleans are 1 and 0', async () => {
      expect(await run('SELECT typeof(?) AS a, typeof(?) AS b, ? AS c, typeof(?) AS d', [1, 1.5, true, 'x'])).toEqual([
        { a: 'integer', b: 'real', c: 1, d: 'text' },
      ])
    })
  },
  engines.slice(0, 1),
)

describeServer(
  'SQL of PostgreSQL',
  { config },
  (server) => {
    const run = (query: string, params?: unknown) => rowsOf(server, query, params)

    test('[SQL-5] values take the type of their parameter', async () => {
      expect(await run('SELECT ?::boolean AS a, ?::int AS b, ?::float8 AS c', [true, 1, 1.5])).toEqual([
        { a: true, b: 1, c: 1.5 },
      ])
    })

    test('[SQL-4] ?? is a literal question mark in operators', async () => {
      expect(
        await run(`SELECT '{"a":1}'::jsonb ?? 'a' AS has, '{"a":1}'::jsonb ??| array['b', ?] AS some`, ['a']),
      ).toEqual([{ has: true, some: true }])
      expect(await run("SELECT $$ ? $$ AS a, $x$ ?$x$ AS b, E'\\'?' AS c, 1 /* /* ? */ ? */ AS d")).toEqual([
        { a: ' ? ', b: ' ?', c: "'?", d: 1 },
      ])
    })

    test('[SQL-5] arrays of any type are returned as arrays', async () => {
      const [row] =
        (await run(`SELECT array[repeat('x', 100000), repeat('"\\', 50000), '{}', 'NULL', '', ' a '] AS texts,
        array[]::int[] AS none, '[0:1]={7,8}'::int[] AS bounded, array['\\x00ff'::bytea] AS bytes,
        array[9007199254740993, 1] AS big, array[null, 'x']::varchar[] AS nulls,
        array[date '2026-01-31', null] AS dates, array[time '12:00', time '01:02:03'] AS times,
        array['a', 'b']::char(1)[] AS characters, array[interval '1 day'] AS intervals,
        array['10.0.0.1'::inet] AS addresses, array[7::oid] AS numbers, array['[1,3)'::int4range] AS ranges`)) as Record<
          string,
          unknown
        >[]
      expect(row).toEqual({
        texts: ['x'.repeat(100_000), '"\\'.repeat(50_000), '{}', 'NULL', '', ' a '],
        none: [],
        bounded: [7, 8],
        bytes: ['AP8='],
        big: ['9007199254740993', 1],
        nulls: [null, 'x'],
        dates: ['2026-01-31', null],
        times: ['12:00:00', '01:02:03'],
        ...{ characters: ['a', 'b'], intervals: ['P1D'], addresses: ['10.0.0.1'], numbers: [7], ranges: ['[1,3)'] },
      })
    })

    test('[SQL-5] each type is returned as its closest JSON equivalent', async () => {
      expect(
        await run(`SELECT 1::int8 AS a, 1.10::numeric AS b, 12345678901234567890.5::numeric AS c, true AS d,
          '{"x": [1, null]}'::jsonb AS e, timestamptz '2026-01-31 13:00:00.5+01' AS f, date '2026-01-31' AS g,
          array[1, null, 3] AS h, array['a,b', 'c"d'] AS i, array[[1, 2], [3, 4]] AS j,
          '6b1d4f6e-0000-4000-8000-000000000000'::uuid AS k, 'NaN'::numeric AS l`),
      ).toEqual([
        {
          ...{ a: 1, b: 1.1, c: '12345678901234567890.5', d: true, e: { x: [1, null] } },
          ...{ f: '2026-01-31T12:00:00.500Z', g: '2026-01-31', h: [1, null, 3], i: ['a,b', 'c"d'] },
          ...{
            j: [
              [1, 2],
              [3, 4],
            ],
            k: '6b1d4f6e-0000-4000-8000-000000000000',
            l: 'NaN',
          },
        },
      ])
    })
  },
  engines.slice(1),
)
