/** Parameters of aggregates that are refused with 400, which names the part that is wrong. */
import { describe } from 'bun:test'
import { open } from '../../harness/config.ts'
import { runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: {
            n: { type: 'number' },
            s: { type: 'string' },
            b: { type: 'boolean' },
            d: { type: 'datetime' },
            j: { type: 'json' },
            secret: { type: 'number' },
          },
          hidden: ['secret'],
          access: open,
        },
        loose: { access: open },
      },
    },
  },
} as const

const count = { n: 'count' }

const refused = (
  what: string,
  params: Readonly<Record<string, unknown>>,
  data: Readonly<Record<string, string>> | undefined,
  path = base,
): Scenario => ({
  name: `[DB-AGG-10] ${what}`,
  path: `${path}/aggregate`,
  query: { measures: { m: 'count' }, ...params },
  status: 400,
  ...(data ? { data } : {}),
})
/** A value with no meaning for a type of field. */
const senseless = (what: string, params: Readonly<Record<string, unknown>>, at: string, path = base): Scenario => ({
  ...refused(what, params, { [at]: 'operator' }, path),
  name: `[DB-AGG-11] ${what}`,
})

describeServer('invalid aggregates', { config }, (server) => {
  describe('are refused', () => {
    runScenarios(
      server,
      [base],
      [
        refused('no measures', { measures: undefined }, { measures: 'required' }),
        refused('an empty object of measures', { measures: {} }, { measures: 'min' }),
        refused('measures that are not JSON', { measures: '{' }, { measures: 'type' }),
        refused('measures that are a list', { measures: [count] }, { measures: 'type' }),
        refused('more than 10 measures', { measures: names(11) }, { measures: 'max' }),
        refused('an unknown measure', { measures: { m: 'median' } }, { 'measures.m': 'type' }),
        refused('a measure of two kinds', { measures: { m: { sum: 'n', avg: 'n' } } }, { 'measures.m': 'type' }),
        refused('a measure of no field', { measures: { m: { sum: 1 } } }, { 'measures.m': 'type' }),
        refused('a measure of an unknown field', { measures: { m: { sum: 'x' } } }, { 'measures.m': 'unknown' }),
        refused('a measure of a hidden field', { measures: { m: { sum: 'secret' } } }, { 'measures.m': 'unknown' }),
        ...['1a', 'a b', 'a"', '', 'é', 'x'.repeat(65), 'constructor', 'prototype'].map((name) =>
          refused(
            `a measure named ${JSON.stringify(name)}`,
            { measures: { [name]: 'count' } },
            {
              [`measures.${name.slice(0, 64)}`]: 'pattern',
            },
          ),
        ),
        refused(
          'a measure named __proto__',
          { measures: '{"__proto__":"count"}' },
          { 'measures.__proto__': 'pattern' },
        ),
        refused('keys that are not JSON', { group: 's' }, { group: 'type' }),
        refused('keys that are no list', { group: { day: 'd' } }, { group: 'type' }),
        refused('more than 4 keys', { group: ['s', 'n', 'b', 'd', 'id'] }, { group: 'max' }),
        refused('an unknown key', { group: ['s', 'x'] }, { 'group[1]': 'unknown' }),
        refused('a hidden key', { group: ['secret'] }, { 'group[0]': 'unknown' }),
        refused('a key that is a number', { group: [1] }, { 'group[0]': 'type' }),
        refused('a key without a kind', { group: [{ tz: 'UTC' }] }, { 'group[0]': 'type' }),
        refused('a key of two kinds', { group: [{ day: 'd', week: 'd' }] }, { 'group[0]': 'type' }),
        refused('a key with an unknown member', { group: [{ day: 'd', zone: 'UTC' }] }, { 'group[0]': 'unknown' }),
        refused('a period of a hidden field', { group: [{ day: 'secret' }] }, { 'group[0]': 'unknown' }),
        refused('a bucket of a hidden field', { group: [{ bucket: 'secret', width: 1 }] }, { 'group[0]': 'unknown' }),
        ...[
          'Europe/Atlantis',
          '',
          'UTC; DROP TABLE items',
          '2026-01-01T00:00[Europe/Berlin]',
          'Z'.repeat(100),
          5,
          null,
        ].map((tz) =>
          refused(`a zone ${JSON.stringify(tz)}`, { group: [{ day: 'd', tz }] }, { 'group[0].tz': 'enum' }),
        ),
        refused('a bucket without a width', { group: [{ bucket: 'n' }] }, { 'group[0].width': 'type' }),
        refused('a width of 0', { group: [{ bucket: 'n', width: 0 }] }, { 'group[0].width': 'min' }),
        refused('a negative width', { group: [{ bucket: 'n', width: -1 }] }, { 'group[0].width': 'min' }),
        refused('a huge width', { group: [{ bucket: 'n', width: 1e300 }] }, { 'group[0].width': 'max' }),
        refused('a width that is text', { group: [{ bucket: 'n', width: '1' }] }, { 'group[0].width': 'type' }),
        refused('a name with a quote', { group: [{ day: 'd', as: 'a"b' }] }, { 'group[0].as': 'pattern' }),
        refused('a key named twice', { group: ['d', { day: 'd' }] }, { 'group[1]': 'unique' }),
        refused('a measure named as a key', { group: ['s'], measures: { s: 'count' } }, { 'measures.s': 'unique' }),
        refused('a condition that is not JSON', { having: 'm>1' }, { having: 'type' }),
        refused('conditions that are no list', { having: { m: 1 } }, { having: 'type' }),
        refused('a condition of two parts', { having: [['m', '>']] }, { 'having[0]': 'type' }),
        refused('a condition on a field that is no key', { having: [['n', '>', 1]] }, { 'having[0]': 'unknown' }),
        refused('a condition on a hidden field', { having: [['secret', '>', 1]] }, { 'having[0]': 'unknown' }),
        refused('a condition with an unknown operator', { having: [['m', '~', 1]] }, { 'having[0]': 'operator' }),
        refused('a condition with text for a count', { having: [['m', '>', '1']] }, { 'having[0]': 'type' }),
        refused('more than 20 conditions', { having: Array(21).fill(['m', '>', 1]) }, { having: 'max' }),
        refused('an order by a field that is no key', { sort: 'n:desc' }, { sort: 'unknown' }),
        refused('an order by a hidden field', { sort: 'secret' }, { sort: 'unknown' }),
        refused('an unknown direction', { sort: 'm:down' }, { sort: 'type' }),
        refused('an order by one name twice', { sort: 'm,m:desc' }, { sort: 'unique' }),
        refused('an order by more than 8 names', { sort: 'a,b,c,d,e,f,g,h,i' }, { sort: 'max' }),
        refused('a limit of 0', { limit: 0 }, { limit: 'min' }),
        refused('a limit that is no number', { limit: 'all' }, { limit: 'type' }),
        refused('a filter on a hidden field', { filter: [['secret', '>', 1]] }, { 'filter[0]': 'unknown' }),
        refused('a search of a table without search', { q: 'x' }, undefined),
        senseless('the sum of a text', { measures: { m: { sum: 's' } } }, 'measures.m'),
        senseless('the mean of datetimes', { measures: { m: { avg: 'd' } } }, 'measures.m'),
        senseless('the sum of a boolean', { measures: { m: { sum: 'b' } } }, 'measures.m'),
        senseless('the least boolean', { measures: { m: { min: 'b' } } }, 'measures.m'),
        senseless('the greatest JSON', { measures: { m: { max: 'j' } } }, 'measures.m'),
        senseless('distinct JSON', { measures: { m: { countDistinct: 'j' } } }, 'measures.m'),
        senseless('JSON as a key', { group: ['j'] }, 'group[0]'),
        senseless('the day of a text', { group: [{ day: 's' }] }, 'group[0]'),
        senseless(
          'the day of an undeclared field',
          { group: [{ day: 'x' }] },
          'group[0]',
          base.replace('items', 'loose'),
        ),
        senseless('buckets of datetimes', { group: [{ bucket: 'd', width: 1 }] }, 'group[0]'),
      ],
    )
  })
})

function names(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, 'count']))
}
