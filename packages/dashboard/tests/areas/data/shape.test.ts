/** Changes of a table as patches of the configuration. */
import { expect, test } from 'bun:test'
import { describeSchema } from '../../../../server/src/features/system/schema.ts'
import { parseTestConfig } from '../../../../server/tests/harness/config.ts'
import type { TableDescription } from '../../../src/app/queries.ts'
import { shapeNotes, shapeSteps, shapeText } from '../../../src/areas/data/shape/shape-patch.ts'
import {
  parseChanges,
  problemOf,
  type ShapeChange,
  type ShapeField,
  shapeBetween,
  shapeOf,
  shapeWith,
} from '../../../src/areas/data/shape/table-shape.ts'
import { patchText } from '../../../src/design/patch/line-diff.ts'

const declared = {
  schema: {
    title: { type: 'string', required: true, unique: true, max: 200, pattern: '^[^\'"\\\\]*$' },
    status: { type: 'string', enum: ['draft', "it's live"], default: 'draft' },
    views: { type: 'number', min: 0 },
    place: { type: 'geo', index: true },
    meta: { type: 'json', default: { tags: ['a'] } },
    authorId: { type: 'string', references: 'authors' },
    note: { type: 'text' },
  },
  indexes: [{ fields: ['status', 'createdAt'] }, { fields: ['views', 'status'], unique: true }],
  search: ['title'],
  hidden: ['note'],
}

/** The description that the server gives of a table. */
function describeTable(table: object): TableDescription {
  const tables = { posts: table, authors: { schema: { name: { type: 'string' } } } }
  const config = parseTestConfig({ databases: { shared: { tables } } } as never, 'development', 'root-key-0123456789')
  return describeSchema(config, [], true).tables.posts as unknown as TableDescription
}

const before = shapeOf(describeTable(declared))
const field = (name: string, more: Partial<ShapeField> = {}): ShapeField => ({
  name,
  type: 'string',
  required: false,
  unique: false,
  ...more,
})
const address = { namespace: 'shared', instanceId: null, table: 'posts' }
const patchLines = (changes: readonly ShapeChange[]): readonly (readonly string[])[] =>
  shapeSteps(address, before, changes).map((step) =>
    (step.kind === 'patch' ? patchText(step.path, step.parts) : step.text)
      .split('\n')
      .filter((line) => /^(?:[+-](?!\+\+|--)|plinth)/.test(line)),
  )

test('the text of a table is a declaration, of which the server makes the same table', () => {
  const weighted = { ...declared, search: ['title', { field: 'status', weight: 3 }] }
  for (const table of [declared, weighted, { schema: {} }]) {
    const shape = shapeOf(describeTable(table))
    const read = new Function(`return { ${shapeText(shape)} }`)() as object
    expect(shapeOf(describeTable(read))).toEqual(shape)
  }
})

test('fields and indexes are added and removed as lines of the declaration', () => {
  expect(
    patchLines([
      { kind: 'add', field: field('sub', { type: 'number', required: true, default: 0, hidden: true }) },
      { kind: 'index', fields: ['sub', 'createdAt'], unique: false },
      { kind: 'unindex', fields: ['status', 'createdAt'] },
    ]),
  ).toEqual([
    [
      "+  sub: { type: 'number', required: true, default: 0 },",
      "-  { fields: ['status', 'createdAt'] },",
      "+  { fields: ['sub', 'createdAt'] },",
      "-hidden: ['note'],",
      "+hidden: ['note', 'sub'],",
    ],
  ])
})

test('a removed field leaves search, indexes and hidden fields too, and its loss has to be accepted', () => {
  expect(patchLines([{ kind: 'remove', name: 'status' }])).toEqual([
    [
      "-  status: { type: 'string', default: 'draft', enum: ['draft', 'it\\'s live'] },",
      '-indexes: [',
      "-  { fields: ['status', 'createdAt'] },",
      "-  { fields: ['views', 'status'], unique: true },",
      '-],',
    ],
    ['plinth migrate --apply'],
  ])
})

test('a field is renamed in two patches with a copy of its values between them', () => {
  const changes: readonly ShapeChange[] = [
    { kind: 'rename', from: 'title', to: 'headline' },
    { kind: 'remove', name: 'views' },
  ]
  const [first, commands, second, loss] = patchLines(changes)
  const options = `unique: true, max: 200, pattern: '^[^\\'"\\\\\\\\]*$'`
  expect(first).toEqual([
    `-  title: { type: 'string', required: true, ${options} },`,
    `+  title: { type: 'string', ${options} },`,
    `+  headline: { type: 'string', ${options} },`,
  ])
  expect(commands).toEqual([
    'plinth export shared.posts title.csv --format csv --fields id,title',
    'plinth import shared.posts title.csv --map title=headline --upsert id',
  ])
  expect(second?.filter((line) => line.includes('search'))).toEqual(["-search: ['title'],", "+search: ['headline'],"])
  expect(second).toContain(`+  headline: { type: 'string', required: true, ${options} },`)
  expect(loss).toEqual(['plinth migrate --apply'])
  const between = shapeBetween(before, changes.slice(0, 1))
  expect(between.fields.filter(({ name }) => name === 'title' || name === 'headline')).toMatchObject([
    { name: 'title', required: false },
    { name: 'headline', required: false },
  ])
  expect(shapeNotes(changes)[0]).toContain('title, views')
})

test('what does not apply is refused, and left out of an address', () => {
  const refused: readonly ShapeChange[] = [
    { kind: 'add', field: field('Title') },
    { kind: 'add', field: field('createdat') },
    { kind: 'add', field: field('a-b') },
    { kind: 'add', field: field('x'.repeat(49)) },
    { kind: 'rename', from: 'none', to: 'some' },
    { kind: 'rename', from: 'title', to: 'views' },
    { kind: 'remove', name: 'id' },
    { kind: 'index', fields: [], unique: false },
    { kind: 'index', fields: ['none'], unique: false },
    { kind: 'index', fields: ['status', 'createdAt'], unique: true },
    { kind: 'unindex', fields: ['status'] },
  ]
  for (const change of refused) expect(problemOf(before, before, change)).not.toBeNull()
  const good: readonly ShapeChange[] = [
    { kind: 'remove', name: 'views' },
    { kind: 'add', field: field('views') },
    { kind: 'add', field: field('fresh') },
    { kind: 'rename', from: 'fresh', to: 'stale' },
  ]
  expect(parseChanges(JSON.stringify([...refused, ...good, null, 'x', { kind: 'drop' }]), before)).toEqual([
    { kind: 'remove', name: 'views' },
    { kind: 'add', field: field('fresh') },
  ])
  expect(parseChanges('{"kind"', before)).toEqual([])
  expect(shapeWith(before, [])).toBe(before)
})
