/** Boolean fields at the end of indexes, on the embedded engine: what they spare, and how they follow the schema. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { parseConfig } from '../../src/config/validate.ts'
import { openSql } from '../../src/engines/open.ts'
import type { Database, Sql } from '../../src/engines/sql/sql.ts'
import { sql } from '../../src/engines/sql/sql-text.ts'
import { createSchema, SchemaError } from '../../src/features/records/schema/migrator.ts'
import { coveredFieldsMax } from '../../src/limits/sqlite.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-covered-'))
let engine: Sql
let database: Database
/** Whether migrations may drop columns. */
let isAccepted = false

interface Fields {
  readonly author: { isNull(): unknown; lower(): unknown }
}

const namespacesOf = (schema: Record<string, object>, fields: readonly string[] = ['author'], name = 'covered') => {
  const items = { schema: { author: { type: 'string' }, ...schema }, indexes: [{ fields }] }
  const { config } = parseConfig(
    { databases: { [name]: { tables: { items } } } },
    { mode: 'release', rootKey: 'k'.repeat(32) },
  )
  return config.namespaces
}
const [done, pinned] = [{ done: { type: 'boolean' } }, { pinned: { type: 'boolean' } }]

beforeAll(async () => {
  const { prepareInstance } = createSchema({ namespaces: () => namespacesOf(done), log: silentLog })
  engine = await openSql({ databaseUrl: null, dataFolder: folder, prepareInstance, log: silentLog })
  database = engine.database({ namespace: 'covered', instanceId: null })
})

afterAll(async () => {
  await engine.close()
  rmSync(folder, { recursive: true })
})

async function migrate(...[schema, fields, name]: Parameters<typeof namespacesOf>): Promise<void> {
  const namespaces = namespacesOf(schema, fields, name)
  await createSchema({ namespaces: () => namespaces, log: silentLog }).migrate(engine, namespaces, {
    accept: isAccepted,
  })
}

/** The columns of the index. */
async function indexed(): Promise<unknown[]> {
  const rows = await database.all(sql`SELECT info.name FROM sqlite_schema AS entry
    JOIN pragma_index_info(entry.name) AS info WHERE entry.tbl_name = 'items' AND entry.name GLOB '_ix*'
    ORDER BY info.seqno`)
  return rows.map(({ name }) => name)
}

test('[DB-START-3] an index covers the boolean fields, and conditions on them read no row', async () => {
  await migrate(done)
  expect(await indexed()).toEqual(['author', 'id', 'done'])
  for (const condition of [sql`"done" = 1`, sql`("done" = 1 OR "author" = 'b')`]) {
    const { lines } = await database.explain(sql`SELECT count(*) FROM "items" WHERE "author" = 'a' AND ${condition}`)
    expect(lines.join()).toContain('USING COVERING INDEX')
  }
})

test('[DB-START-3] a new boolean field leaves an index as it is, and a removed one does not stay in it', async () => {
  await migrate({ ...done, ...pinned })
  expect(await indexed()).toEqual(['author', 'id', 'done'])
  await expect(migrate(pinned)).rejects.toBeInstanceOf(SchemaError)
  expect(await indexed()).toEqual(['author', 'id', 'done'])
  isAccepted = true
  await migrate(pinned)
  expect(await indexed()).toEqual(['author', 'id', 'pinned'])
  await migrate({})
  expect(await indexed()).toEqual(['author', 'id'])
  await migrate(pinned)
  expect(await indexed()).toEqual(['author', 'id'])
})

test('[DB-START-3] a computed field that is no longer a boolean does not stay in an index', async () => {
  const isUnknown = { mark: { type: 'boolean', computed: (f: Fields) => f.author.isNull() } }
  const lower = { mark: { type: 'string', computed: (f: Fields) => f.author.lower() } }
  const others = { ...pinned, name: { type: 'string' } }
  await migrate({ ...others, ...isUnknown }, ['name'])
  expect(await indexed()).toEqual(['name', 'id', 'pinned', 'mark'])
  await migrate({ ...others, ...lower }, ['name'])
  expect(await indexed()).toEqual(['name', 'id', 'pinned'])
})

test('[DB-START-3] the fields that an index covers are bounded', async () => {
  const names = Array.from({ length: coveredFieldsMax + 2 }, (_, n) => `flag${n}`)
  const flags = Object.fromEntries(names.map((name) => [name, { type: 'boolean' }]))
  await migrate(flags, ['author'], 'many')
  database = engine.database({ namespace: 'many', instanceId: null })
  expect(await indexed()).toEqual(['author', 'id', ...names.slice(0, coveredFieldsMax)])
})
