/** Statements that try to leave their SQL database, each of which must be refused. On every engine. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { exec } from '../harness/resources/sql.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const config = {
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } }, access: open } } } },
  sql: { main: {}, other: {} },
}
const posts = '/api/db/shared/tables/posts'

/** The records, this database and the other one, which a refused statement must not change. */
async function dumpAll(server: TestServer): Promise<unknown> {
  return {
    records: await server.dump(posts),
    secrets: (await exec(server, 'SELECT * FROM secrets', [], 'other')).body.results,
    own: (await exec(server, 'SELECT * FROM own')).body.results,
  }
}

const outside = mkdtempSync(join(tmpdir(), 'plinth-outside-'))
const file = join(outside, 'x.sqlite')
afterAll(() => rmSync(outside, { recursive: true }))

const onSqlite: readonly string[] = [
  `ATTACH '${file}' AS x`,
  'ATTACH DATABASE ? AS x',
  `attach/**/database '${file}' as x`,
  `EXPLAIN ATTACH '${file}' AS x`,
  "ATTACH ':memory:' AS x",
  "ATTACH '' AS x",
  'DETACH main',
  'VACUUM',
  `VACUUM INTO '${file}'`,
  `VACUUM main INTO '${file}'`,
  "SELECT load_extension('./x.so')",
  "SELECT LOAD_EXTENSION('./x.so', 'y')",
  'SELECT "load_extension"(\'./x.so\')',
  "WITH a AS (SELECT load_extension('x')) SELECT * FROM a",
  "SELECT fts3_tokenizer('simple')",
  "SELECT fts3_tokenizer('x', x'00')",
  "SELECT readfile('/etc/hostname')",
  `SELECT writefile('${file}', 'x')`,
  "SELECT edit('x')",
  `CREATE VIRTUAL TABLE f USING csv(filename='${file}')`,
  'CREATE VIRTUAL TABLE f USING fts4(x)',
  'CREATE VIRTUAL TABLE f USING dbstat',
  'CREATE TEMP TABLE t (a)',
  'CREATE TABLE temp.t (a)',
  'CREATE TEMP VIEW v AS SELECT 1',
  'CREATE TEMP TABLE IF NOT EXISTS t AS SELECT 1',
  'CREATE VIEW temp.v AS SELECT 1',
  'CREATE VIRTUAL TABLE temp.v USING fts5(a)',
  'CREATE TRIGGER temp.t AFTER INSERT ON main.own BEGIN SELECT 1; END',
  'INSERT INTO sqlite_temp_schema VALUES (1, 1, 1, 1, 1)',
  'CREATE TEMP TRIGGER t AFTER INSERT ON own BEGIN SELECT 1; END',
  'PRAGMA journal_mode = DELETE',
  'PRAGMA journal_mode(OFF)',
  'PRAGMA main.journal_mode = MEMORY',
  'pragma /* x */ synchronous = off',
  'EXPLAIN PRAGMA synchronous = 0',
  'PRAGMA writable_schema = 1',
  'PRAGMA trusted_schema = ON',
  'PRAGMA foreign_keys = OFF',
  'PRAGMA max_page_count = 4294967294',
  'PRAGMA hard_heap_limit = 0',
  'PRAGMA page_size = 65536',
  'PRAGMA schema_version = 7',
  'PRAGMA locking_mode = EXCLUSIVE',
  "PRAGMA temp_store_directory = '/tmp'",
  'PRAGMA database_list',
  'SELECT * FROM pragma_database_list',
  'PRAGMA wal_checkpoint(TRUNCATE)',
  'PRAGMA wal_autocheckpoint = 0',
  'PRAGMA busy_timeout = 0',
  'PRAGMA incremental_vacuum',
  'PRAGMA shrink_memory',
  "PRAGMA key = 'x'",
  'DELETE FROM sqlite_schema',
  "UPDATE sqlite_master SET sql = 'x'",
  "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'x')",
  'INSERT INTO sqlite_schema SELECT * FROM sqlite_schema',
  'DROP TABLE sqlite_sequence',
  'SELECT * FROM secrets',
  'SELECT * FROM posts',
]

const onPostgres: readonly string[] = [
  'SELECT * FROM shared.posts',
  'SELECT * FROM "shared"."posts"',
  'UPDATE shared.posts SET title = title',
  'DROP SCHEMA shared CASCADE',
  'DROP TABLE shared.posts',
  'ALTER TABLE shared.posts ADD COLUMN x int',
  'SELECT * FROM _sql_other.secrets',
  'CREATE TABLE shared.mine (a int)',
  'CREATE TABLE public.mine (a int)',
  'CREATE TABLE _sql_other.mine (a int)',
  'CREATE SCHEMA mine',
  'CREATE DATABASE mine',
  'CREATE ROLE mine',
  "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
  "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
  "DO 'BEGIN END'",
  'CREATE EXTENSION dblink',
  'CREATE TEMP TABLE t (a int)',
  'CREATE TEMPORARY VIEW v AS SELECT 1',
  'SET ROLE plinth',
  'SET SESSION AUTHORIZATION plinth',
  'RESET ROLE',
  'RESET ALL',
  "SET statement_timeout = '1h'",
  "SELECT set_config('role', 'plinth', false)",
  "SELECT SET_CONFIG('statement_timeout', '0', false)",
  `SELECT "set_config"('role', 'plinth', false)`,
  "SELECT pg_catalog.set_config('role', 'plinth', false)",
  `SELECT U&"\\0073et_config"('role', 'plinth', false)`,
  'SELECT pg_advisory_lock(1)',
  'SELECT pg_try_advisory_xact_lock(1)',
  // The scanner must agree with PostgreSQL about where comments and strings end.
  "SELECT 1 --\r, set_config('statement_timeout', '0', false)",
  "SELECT E'a'\n'b\\' ', pg_advisory_lock(1), ' '",
  "SELECT e'a' --'\n \t'b\\' ', pg_advisory_lock(1), ' '",
  "SELECT ?1::text, $?1' $$, pg_advisory_lock(1) --'",
  "SELECT query_to_xml('SELECT pg_advisory_lock(1)', true, true, '')",
  "SELECT ts_stat('SELECT pg_advisory_lock(1)')",
  "SELECT * FROM public.crosstab('SELECT pg_advisory_lock(1)') AS c (a text)",
  "SELECT pg_read_file('/etc/hostname')",
  "SELECT pg_ls_dir('.')",
  "SELECT lo_import('/etc/hostname')",
  'SELECT lo_creat(-1)',
  'SELECT pg_terminate_backend(pg_backend_pid())',
  'SELECT * FROM pg_authid',
  'SELECT * FROM pg_class',
  'SELECT * FROM pg_catalog.pg_stat_activity',
  'SELECT 16384::regclass',
  "SELECT '{16384}'::_regclass",
  "SELECT to_regclass('shared.posts')",
  "COPY own TO '/tmp/x'",
  "COPY own FROM PROGRAM 'id'",
  'COPY own TO STDOUT',
  'COPY own FROM STDIN',
  "LOAD 'x'",
  'LISTEN x',
  'NOTIFY x',
  'PREPARE p AS SELECT 1',
  'EXECUTE p',
  'DEALLOCATE ALL',
  'DISCARD ALL',
  'DECLARE c CURSOR WITH HOLD FOR SELECT 1',
  'LOCK TABLE own',
  'VACUUM',
  'CHECKPOINT',
  'CLUSTER',
  "ALTER SYSTEM SET fsync = 'off'",
  'ALTER ROLE CURRENT_USER CREATEDB',
  "ALTER ROLE CURRENT_USER PASSWORD 'x'",
  'ALTER USER CURRENT_USER SET statement_timeout = 0',
  'ALTER SCHEMA _sql_main RENAME TO mine',
  'DROP SCHEMA _sql_main CASCADE',
  'DROP OWNED BY CURRENT_USER',
  'REASSIGN OWNED BY CURRENT_USER TO plinth',
  'GRANT ALL ON own TO PUBLIC',
  'GRANT plinth TO CURRENT_USER',
  'ALTER TABLE own OWNER TO plinth',
  'ALTER TABLE own SET SCHEMA public',
  'CREATE RULE r AS ON INSERT TO own DO ALSO NOTIFY x',
  'CREATE TRIGGER t AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION f()',
  'CREATE EVENT TRIGGER t ON ddl_command_start EXECUTE FUNCTION f()',
  'CREATE POLICY p ON own',
  "SECURITY LABEL ON TABLE own IS 'x'",
  'CALL p()',
]

describeServer('SQL confinement', { config }, (server) => {
  const isSqlite = (): boolean => server.settings().databaseUrl === null

  test('[SQL-14, SQL-15] no statement reaches files, settings, locks, sessions or other schemas', async () => {
    await exec(server, 'CREATE TABLE secrets (a INTEGER)', [], 'other')
    await exec(server, 'INSERT INTO secrets VALUES (42)', [], 'other')
    await exec(server, 'CREATE TABLE own (a INTEGER)')
    await exec(server, 'INSERT INTO own VALUES (1)')
    await server.service.post(posts, { id: 'p', title: 'untouched' })
    const before = await dumpAll(server)
    for (const query of isSqlite() ? onSqlite : onPostgres) {
      const { status, text } = await exec(server, query, query.includes('?') ? [file] : [])
      if (status !== 400) throw new Error(`${query} returned ${status}: ${text}`)
    }
    expect(await dumpAll(server)).toEqual(before)
    expect(existsSync(file)).toBe(false)
    expect(readdirSync(outside)).toEqual([])
  })
})

const own = async (server: TestServer): Promise<void> => {
  await exec(server, 'CREATE TABLE own (a INTEGER)')
  await exec(server, 'INSERT INTO own VALUES (1)')
}

describeServer(
  'SQL confinement in SQLite',
  { config },
  (server) => {
    beforeAll(() => own(server))

    test('[SQL-14] a forbidden function in a view, a trigger or a default is refused', async () => {
      await exec(server, "CREATE VIEW hidden AS SELECT load_extension('x') AS a")
      expect((await exec(server, 'SELECT * FROM hidden')).status).toBe(400)
      await exec(server, "CREATE TRIGGER sly AFTER INSERT ON own BEGIN SELECT load_extension('x'); END")
      expect((await exec(server, 'INSERT INTO own VALUES (2)')).status).toBe(400)
      await exec(server, 'DROP TRIGGER sly')
      expect((await exec(server, 'SELECT count(*) AS n FROM own')).body.results).toEqual([{ n: 1 }])
      expect((await exec(server, "CREATE TABLE d (a DEFAULT (load_extension('x')))")).status).toBe(400)
    })

    test('[SQL-14] pragmas that only read are allowed', async () => {
      const value = async (query: string) => (await exec(server, query)).body.results
      expect(await value('PRAGMA table_info(own)')).toMatchObject([{ name: 'a' }])
      expect(await value("SELECT name FROM pragma_table_info('own')")).toEqual([{ name: 'a' }])
      expect(await value('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }])
      expect(await value('PRAGMA foreign_keys')).toEqual([{ foreign_keys: 1 }])
      await exec(server, 'PRAGMA user_version = 3')
      expect(await value('PRAGMA user_version')).toEqual([{ user_version: 3 }])
    })

    test('[SQL-14] statements can create, alter and drop tables, indexes and views of their database', async () => {
      for (const query of [
        'CREATE TABLE made (a INTEGER PRIMARY KEY AUTOINCREMENT, b REFERENCES own (a))',
        'CREATE INDEX made_b ON made (b)',
        'ALTER TABLE made ADD COLUMN c',
        'ALTER TABLE made RENAME COLUMN c TO d',
        'ALTER TABLE made RENAME TO renamed',
        'CREATE VIEW seen AS SELECT * FROM renamed',
        'REINDEX',
        'ANALYZE',
        'ALTER TABLE renamed DROP COLUMN d',
        'DROP VIEW seen',
        'DROP TABLE renamed',
        'CREATE TABLE copied AS SELECT * FROM own',
        'DROP TABLE copied',
      ]) {
        const { status, text } = await exec(server, query)
        if (status !== 200) throw new Error(`${query} returned ${status}: ${text}`)
      }
    })

    test('[SQL-14] the embedded engine supports full-text tables', async () => {
      await exec(server, 'CREATE VIRTUAL TABLE words USING fts5(text)')
      await exec(server, 'INSERT INTO words VALUES (?)', ['the quick brown fox'])
      expect((await exec(server, 'SELECT text FROM words WHERE words MATCH ?', ['quick'])).body.results).toHaveLength(1)
      // The shadow tables of a full-text table cannot be written.
      expect((await exec(server, 'DELETE FROM words_data')).status).toBe(400)
    })
  },
  engines.slice(0, 1),
)

describeServer(
  'SQL confinement in PostgreSQL',
  { config },
  (server) => {
    beforeAll(() => own(server))

    test('[SQL-15] a role sees only its own tables and has no other privileges', async () => {
      const { databaseUrl } = server.settings()
      const seen = await exec(
        server,
        "SELECT table_name FROM information_schema.tables WHERE table_schema <> 'pg_catalog' AND table_schema <> 'information_schema'",
      )
      expect(seen.body.results).toEqual([{ table_name: 'own' }])
      const client = new pg.Client({ connectionString: databaseUrl ?? '' })
      await client.connect()
      try {
        const { rows } = await client.query(
          `SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,
          has_schema_privilege(rolname, 'shared', 'USAGE') AS shared, has_schema_privilege(rolname, '_sql_other', 'USAGE') AS other,
          has_schema_privilege(rolname, 'public', 'CREATE') AS public
        FROM pg_roles WHERE rolname = (SELECT tableowner FROM pg_tables WHERE schemaname = '_sql_main' AND tablename = 'own')`,
        )
        expect(rows).toEqual([
          {
            ...{
              rolsuper: false,
              rolcreatedb: false,
              rolcreaterole: false,
              rolreplication: false,
              rolbypassrls: false,
            },
            ...{ shared: false, other: false, public: false },
          },
        ])
      } finally {
        await client.end()
      }
    })

    test('[SQL-15] the session settings are the defaults for every statement', async () => {
      // Independent of the scanner: the session itself must be reset for each statement.
      for (let at = 0; at < 8; at++) {
        const { body } = await exec(
          server,
          "SELECT current_setting('search_path') AS path, current_setting('statement_timeout') AS timeout, current_user = session_user AS same",
        )
        expect(body.results).toEqual([{ path: '_sql_main', timeout: '30s', same: true }])
      }
    })
  },
  engines.slice(1),
)
