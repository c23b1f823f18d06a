/** Generators of malformed requests: parameters, bodies, filters, paths. */
import fc from 'fast-check'

const nasty = fc.constantFrom(
  '',
  ' ',
  '0',
  '-1',
  '1.5',
  '1e999',
  'NaN',
  'null',
  'true',
  '[]',
  '{}',
  '[[]]',
  '[[null]]',
  '[["rank",">",{}]]',
  '[["rank"]]',
  '{"rank":1}',
  '"',
  "'",
  '\\',
  '%',
  '%00',
  '\0',
  '\n',
  ';',
  '--',
  '/*',
  ')',
  "' OR '1'='1",
  '"; DROP TABLE items;--',
  '__proto__',
  'constructor',
  'toString',
  'rowid',
  '_changes',
  'id',
  'secret',
  'rank:asc',
  'rank:desc,id',
  ',',
  ':',
  '.',
  '..',
  '../../../../..',
  '.e30',
  '.W10.x',
  'a'.repeat(300),
  '\u{1F600}',
  '\uD800',
  '\u202E',
  '\uFEFF',
  '$x',
  '{{x}}',
  '<script>',
  '1'.repeat(400),
  '[["title","contains","%"]]',
)
export const text = fc.oneof(
  nasty,
  fc.string({ maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.json({ maxDepth: 3 }),
)
const parameter = fc.constantFrom(
  'filter',
  'orFilter',
  'sort',
  'limit',
  'page',
  'perPage',
  'offset',
  'after',
  'before',
  'fields',
  'q',
  'highlightPre',
  'highlightPost',
  'upsert',
  'conflictTarget',
  'nope',
  '__proto__',
)
export const search = fc.array(fc.tuple(parameter, text), { maxLength: 4 }).map((pairs) => {
  const wellFormed = pairs.map(([name, value]): [string, string] => [name, value.toWellFormed()])
  return pairs.length === 0 ? '' : `?${new URLSearchParams(wellFormed)}`
})
const name = fc.oneof(
  fc.constantFrom(
    'title',
    'rank',
    'done',
    'due',
    'tags',
    'slug',
    'secret',
    'id',
    'createdAt',
    'updatedAt',
    'nope',
    '__proto__',
    'constructor',
    '',
  ),
  fc.string({ maxLength: 10 }),
)
const leaf = fc.oneof(
  text,
  fc.double(),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(1e308, -1e308, 2 ** 53, -0),
  fc.record({
    $op: fc.oneof(fc.constantFrom('increment', 'deleteField', 'x'), text),
    value: fc.oneof(fc.double(), text, fc.constant(null)),
  }),
)
const value = fc.oneof(
  leaf,
  fc.array(leaf, { maxLength: 3 }),
  fc.dictionary(fc.string({ maxLength: 5 }), leaf, { maxKeys: 3 }),
)
const record = fc.dictionary(name, value, { maxKeys: 5 })
export const tuple = fc.oneof(
  fc.tuple(name, fc.constantFrom('==', '!=', '>', '<=', 'contains', 'in', 'not in', 'like'), value),
  fc.array(value, { maxLength: 4 }),
  value,
)
export const body = fc.oneof(
  record,
  fc.record(
    {
      inserts: fc.oneof(fc.array(fc.oneof(record, leaf), { maxLength: 3 }), leaf),
      updates: fc.oneof(
        fc.array(fc.oneof(fc.record({ id: leaf, data: fc.oneof(record, leaf) }), leaf), { maxLength: 3 }),
        leaf,
      ),
      deletes: fc.oneof(fc.array(leaf, { maxLength: 3 }), leaf),
    },
    { requiredKeys: [] },
  ),
  fc.record(
    {
      action: fc.oneof(fc.constantFrom('update', 'delete'), leaf),
      filter: fc.oneof(fc.array(tuple, { maxLength: 3 }), leaf),
      orFilter: fc.oneof(fc.array(tuple, { maxLength: 7 }), leaf),
      data: fc.oneof(record, leaf),
    },
    { requiredKeys: [] },
  ),
  value,
)
export const segment = fc
  .oneof(nasty, fc.string({ maxLength: 20 }), fc.constantFrom('a', 'b', 'items', 'shared'))
  .map((one) => encodeURIComponent(one.toWellFormed()))
