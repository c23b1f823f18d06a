import { expect, test } from 'bun:test'
import { findMistakes } from '../../validate.ts'

const text = { type: 'string' }
const number = { type: 'number' }
const json = { type: 'json' }
const types = 'string, text, number, boolean, datetime, json, geo'
const notJson = 'must be JSON: null, booleans, finite numbers, text, lists and plain objects'
const notLocation = 'must be [longitude, latitude], from -180 to 180 and from -90 to 90'
const notTimestamp = 'must be a timestamp such as "2026-01-31T12:00:00Z"'
const repeated = 'repeats a repetition, such as (a+)+: a short text could keep the server busy for hours'
const nested = JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`)

test.each<[field: unknown, option: string, message: string]>([
  ['string', '', 'must be an object, not a string'],
  [{}, '.type', 'is missing'],
  [{ type: 'strin' }, '.type', `must be one of ${types}. Did you mean "string"?`],
  [{ type: 5 }, '.type', `must be one of ${types}.`],
  [{ ...text, requierd: true }, '.requierd', 'is not known here. Did you mean "required"?'],
  [{ ...text, required: 'yes' }, '.required', 'must be true or false, not a string'],
  [{ ...text, min: '1' }, '.min', 'must be a number, not a string'],

  [{ ...text, min: 1.5 }, '.min', 'must be a number of characters, an integer of 0 or more'],
  [{ ...text, max: -1 }, '.max', 'must be a number of characters, an integer of 0 or more'],
  [{ ...text, min: 5, max: 4 }, '.min', 'is greater than max (4)'],
  [{ ...number, min: 5, max: 4 }, '.min', 'is greater than max (4)'],
  [{ ...text, pattern: '(' }, '.pattern', 'is not a regular expression (with the flag u)'],
  [{ ...text, pattern: '^(a+)+$' }, '.pattern', repeated],
  [{ ...text, pattern: '^(?:[\\w.]*)*@' }, '.pattern', repeated],
  [{ ...text, pattern: '(?<x>\\p{L}+?){2,}' }, '.pattern', repeated],
  [{ ...text, enum: [] }, '.enum', 'must not be empty'],
  [{ ...text, enum: ['a', 1] }, '.enum', 'must hold texts only'],
  [{ ...text, enum: ['a', 'a'] }, '.enum', 'holds a value twice'],
  [{ ...number, enum: ['a'] }, '.enum', 'must hold numbers only'],
  [{ ...text, enum: [true] }, '.enum[0]', 'must be text or a number'],
  [{ ...text, references: 'users' }, '.references', 'there is no table "users" in this namespace'],
  [{ type: 'text', references: 'posts' }, '.references', 'is not for fields of type text'],
  [{ ...json, unique: true }, '.unique', 'is not for fields of type json'],
  [{ type: 'boolean', min: 0 }, '.min', 'is not for fields of type boolean'],
  [{ type: 'datetime', pattern: 'x' }, '.pattern', 'is not for fields of type datetime'],

  [{ ...text, default: 1 }, '.default', 'must be text'],
  [{ ...text, default: null }, '.default', 'must be text'],
  [{ ...text, default: 'a\0' }, '.default', 'must be text'],
  [{ ...text, max: 2, default: 'abc' }, '.default', 'is above max (2 characters)'],
  [{ ...text, min: 2, default: '😀' }, '.default', 'is below min (2 characters)'],
  [{ ...text, pattern: '^a$', default: 'b' }, '.default', 'does not match the pattern'],
  [{ ...text, enum: ['a'], default: 'b' }, '.default', 'is not one of the enum'],
  [{ ...number, default: Number.NaN }, '.default', 'must be a number'],
  [{ ...number, min: 1, default: 0 }, '.default', 'is below min (1)'],
  [{ type: 'boolean', default: 0 }, '.default', 'must be true or false'],
  [{ type: 'datetime', default: '2026-02-30' }, '.default', notTimestamp],
  [{ type: 'datetime', default: 0 }, '.default', notTimestamp],
  [{ ...json, default: { a: () => 1 } }, '.default', notJson],
  [{ ...json, default: [undefined] }, '.default', notJson],
  [{ ...json, default: new Date(0) }, '.default', notJson],
  [{ ...json, default: nested }, '.default', notJson],
  [{ type: 'geo', default: [181, 0] }, '.default', notLocation],
  [{ type: 'geo', default: [0] }, '.default', notLocation],
  [{ type: 'geo', unique: true }, '.unique', 'is not for fields of type geo'],
  [{ ...text, index: true }, '.index', 'is not for fields of type string'],
  [{ type: 'geo', index: 1 }, '.index', 'must be true or false, not a number'],
])('%j', (field, option, message) => {
  const written = { databases: { shared: { tables: { posts: { schema: { title: field } } } } } }
  expect(findMistakes(written, '')).toEqual([`databases.shared.tables.posts.schema.title${option}: ${message}`])
})

test.each(['^[a-z]+(-[a-z]+)*$', '^(\\d+,)*\\d+$', '(a+)?', '(a+){2}', '\\(a+\\)+', '^[(]a+[)]+$', '^(ab+)+$'])(
  'the pattern %s is valid',
  (pattern) => {
    const field = { type: 'string', pattern }
    expect(findMistakes({ databases: { shared: { tables: { posts: { schema: { title: field } } } } } }, '')).toEqual([])
  },
)
