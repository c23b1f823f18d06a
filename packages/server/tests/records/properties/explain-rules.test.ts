/**
 * Random rules, records and callers: the verdict of an explanation is the status of the endpoint, its clauses agree
 * with it, and asking changes nothing. `PLINTH_EXPLAIN_CASES` is the number of cases per engine.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { and, exists, field as fieldRef, not, or, where } from '../../../src/access/filter.ts'
import { type Answer, type Client, query } from '../../harness/client.ts'
import { describeServer } from '../../harness/server.ts'

const cases = Number(process.env.PLINTH_EXPLAIN_CASES ?? 60)
const questionsPerCase = 12

type Value = string | number | boolean | null
type Rule =
  | boolean
  | { readonly all: readonly Rule[] }
  | { readonly any: readonly Rule[] }
  | { readonly none: Rule }
  | { readonly tuple: readonly [name: string, op: string, value: Value | readonly Value[]] }
  | { readonly exists: Readonly<Record<string, Value | { readonly field: string }>> }
  | { readonly missing: string }

/** Rules in custom claims, as filters. `missing` compares with undefined, so that the rule fails. */
function build(rule: Rule): object | boolean {
  if (typeof rule === 'boolean') return rule
  if ('all' in rule) return and(...(rule.all.map(build) as object[]))
  if ('any' in rule) return or(...(rule.any.map(build) as object[]))
  if ('none' in rule) return not(build(rule.none) as object)
  if ('tuple' in rule) return where(rule.tuple[0], rule.tuple[1] as '==', rule.tuple[2] as string)
  if ('missing' in rule) return { [rule.missing]: undefined as unknown as string }
  const values = Object.entries(rule.exists).map(([name, value]) => [
    name,
    typeof value === 'object' && value !== null ? fieldRef(value.field) : value,
  ])
  return exists('others', Object.fromEntries(values))
}

type Rules = Readonly<Record<string, Rule>>
type Auth = { custom: { rules?: Rules } } | null

/** Anonymous callers have no claims: half of the operations are open to them. */
const ruled = (name: string, isOpen: boolean) => (auth: Auth) =>
  auth ? build(auth.custom.rules?.[name] ?? false) : isOpen

const fields = { s: { type: 'string' }, n: { type: 'number' }, b: { type: 'boolean' }, h: { type: 'string' } } as const

const config = {
  databases: {
    space: {
      instance: true,
      access: (auth: Auth) => (auth ? build(auth.custom.rules?.entry ?? false) : true),
      tables: {
        things: {
          schema: fields,
          hidden: ['h'],
          access: {
            read: ruled('read', true),
            insert: ruled('insert', true),
            update: { before: ruled('before', false), after: ruled('after', true) },
            delete: ruled('delete', false),
          },
        },
        others: { schema: { s: { type: 'string' }, n: { type: 'number' } }, access: {} },
      },
    },
  },
}

const texts = fc.constantFrom<Value>('', 'a', 'A', 'ab', '%', "'", '\u{1F600}')
const numbers = fc.constantFrom<Value>(-1, 0, 0.5, 1, 2)
const booleans = fc.constantFrom<Value>(true, false)
const valuesOf: Readonly<Record<string, fc.Arbitrary<Value>>> = { s: texts, n: numbers, b: booleans, h: texts }
const names = fc.constantFrom('s', 'n', 'b', 'h')
const orNull = (value: fc.Arbitrary<Value>): fc.Arbitrary<Value> => fc.option(value, { freq: 4 })

const row = fc.record({ s: orNull(texts), n: orNull(numbers), b: orNull(booleans), h: orNull(texts) })
const other = fc.record({ s: orNull(texts), n: orNull(numbers) })
/** What a caller may send: no hidden field. */
const body = fc.record({ s: orNull(texts), n: orNull(numbers), b: orNull(booleans) }, { requiredKeys: [] })

const tuple: fc.Arbitrary<Rule> = names.chain((name) => {
  const value = valuesOf[name] as fc.Arbitrary<Value>
  const compared = fc.record({
    tuple: fc.tuple(fc.constant(name), fc.constantFrom('==', '!=', '>', '<='), value),
  })
  const listed = fc.record({
    tuple: fc.tuple(
      fc.constant(name),
      fc.constantFrom('in', 'not in'),
      fc.array(value, { minLength: 1, maxLength: 3 }),
    ),
  })
  const empty = fc.record({ tuple: fc.tuple(fc.constant(name), fc.constantFrom('==', '!='), fc.constant(null)) })
  return fc.oneof({ weight: 4, arbitrary: compared }, listed, empty) as fc.Arbitrary<Rule>
})
const existing: fc.Arbitrary<Rule> = fc.record({
  exists: fc.constantFrom<Readonly<Record<string, Value | { field: string }>>>(
    { s: { field: 's' } },
    { n: { field: 'n' } },
    { s: 'a', n: { field: 'n' } },
    { s: { field: 'h' } },
    { s: 'ab' },
  ),
})
const rule = fc.letrec<{ rule: Rule }>((tie) => ({
  rule: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { weight: 6, arbitrary: tuple },
    { weight: 2, arbitrary: existing },
    { weight: 1, arbitrary: fc.boolean() },
    {
      weight: 2,
      arbitrary: fc.record({ all: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }) as fc.Arbitrary<Rule>,
    },
    {
      weight: 3,
      arbitrary: fc.record({ any: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }) as fc.Arbitrary<Rule>,
    },
    { weight: 2, arbitrary: fc.record({ none: tie('rule') }) as fc.Arbitrary<Rule> },
  ),
})).rule
/** Rules that permit often enough for the later ones to matter, and now and then one that fails. */
const lenient = fc.oneof(
  { weight: 4, arbitrary: rule },
  { weight: 3, arbitrary: fc.constant<Rule>(true) },
  { weight: 1, arbitrary: fc.constant<Rule>({ missing: 's' }) },
)
const entry = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Rule>(true) },
  fc.constant<Rule>(false),
  fc.constant<Rule>({ exists: { s: 'a' } }),
)

const question = fc.record({
  operation: fc.constantFrom('list', 'get', 'create', 'update', 'delete'),
  id: fc.constantFrom('t0', 't1', 't2', 't3', 'missing'),
  body,
  isAnonymous: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
})
type Question = typeof question extends fc.Arbitrary<infer Q> ? Q : never

const example = fc.record({
  things: fc.array(row, { minLength: 4, maxLength: 4 }),
  others: fc.array(other, { maxLength: 3 }),
  rules: fc.record({ entry, read: lenient, insert: lenient, before: lenient, after: lenient, delete: lenient }),
  questions: fc.array(question, { minLength: questionsPerCase, maxLength: questionsPerCase }),
})

const withId = <T extends object>(prefix: string, items: readonly T[]) =>
  items.map((item, at) => ({ id: `${prefix}${at}`, ...item }))

const onlyOfId = (id: string): string => query({ filter: [['id', '==', id]] })

function send(client: Client, things: string, { operation, id, body: sent }: Question): Promise<Answer> {
  if (operation === 'list') return client.get(things + onlyOfId(id))
  if (operation === 'get') return client.get(`${things}/${id}`)
  if (operation === 'create') return client.post(things, sent)
  return operation === 'update' ? client.patch(`${things}/${id}`, sent) : client.delete(`${things}/${id}`)
}

interface Clause {
  readonly path: string
  readonly result: boolean | null
}

describeServer('explanations of random rules', { config }, (server) => {
  let count = 0

  test('[RULES-EXPLAIN-1] the verdict is the status of the endpoint, and asking changes nothing', async () => {
    const run = async ({
      things,
      others,
      rules,
      questions,
    }: typeof example extends fc.Arbitrary<infer E> ? E : never) => {
      const instanceId = `i${count++}`
      const base = `/api/db/space/${instanceId}/tables`
      const seeded = await server.service.post(`${base}/things/batch`, { inserts: withId('t', things) })
      expect(seeded.status).toBe(200)
      if (others.length > 0)
        expect((await server.service.post(`${base}/others/batch`, { inserts: withId('o', others) })).status).toBe(200)
      const claims = { id: 'ada', custom: { rules } }
      const ada = server.as(claims)
      for (const one of questions) {
        const { operation, id } = one
        const isWrite = operation === 'create' || operation === 'update'
        const before = await server.dump(`${base}/things`)
        const explained = await server.service.post('/api/rules/explain', {
          namespace: 'space',
          instanceId,
          table: 'things',
          operation,
          ...(operation === 'create' ? {} : { id }),
          ...(isWrite && { row: one.body }),
          caller: one.isAnonymous ? { kind: 'anonymous' } : { kind: 'claims', auth: claims },
        })
        expect([explained.status, await server.dump(`${base}/things`)]).toEqual([200, before])
        const { body } = explained
        const answer = await send(one.isAnonymous ? server.anonymous : ada, `${base}/things`, one)
        expect(body.verdict).toBe(answer.status === 201 ? 200 : answer.status)
        if (body.verdict === 200) expect(body.reason).toBeNull()
        else expect(body.reason).toBe(answer.body.message)
        const roots: readonly Clause[] = body.clauses.filter((one: Clause) => !/\.(and|or|not)\b/.test(one.path))
        const isTrue = roots.every(({ result }) => result === true)
        if (operation === 'list') {
          if (body.verdict === 200) expect(body.listed).toBe(answer.body.items.length === 1)
        } else {
          const exists = operation === 'create' || JSON.stringify(before).includes(`"id":"${id}"`)
          expect(isTrue && exists).toBe(body.verdict === 200)
        }
      }
    }
    await fc.assert(fc.asyncProperty(example, run), { numRuns: cases })
  }, 120_000)
})
