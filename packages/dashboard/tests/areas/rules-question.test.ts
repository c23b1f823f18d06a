/** Questions about access: URL, body and command say the same. */
import { expect, test } from 'bun:test'
import {
  callerKinds,
  commandOf,
  type Draft,
  draftOf,
  missingOf,
  operations,
  paramsOf,
  problemsOf,
  questionOf,
} from '../../src/areas/rules/question.ts'

const empty = draftOf(() => null)
/** What URLs and shells read as something else unless it is quoted. */
const texts = [
  'plain',
  "it's",
  '"',
  '$HOME `id` $(id)',
  '-x --as=admin',
  'a&b=c#d?e%20+f',
  '\\n\n\t',
  'é 漢字 👩‍🚀',
  '*;|>',
]

const drafts: readonly Draft[] = texts.flatMap((text) =>
  operations.flatMap((operation) =>
    callerKinds.flatMap((caller) =>
      (['id', 'row'] as const).map(
        (source): Draft => ({
          namespace: 'shared',
          instance: 'acme',
          table: 'notes',
          operation,
          caller,
          userId: 'u-1',
          claims: JSON.stringify({ id: text }),
          source,
          id: `id${text}`.trim(),
          row: JSON.stringify({ [text]: text }),
          filter: JSON.stringify([['title', '==', text]]),
          sort: text.startsWith('a') ? '-title' : '',
        }),
      ),
    ),
  ),
)

/** The draft of the URL that a draft leads to. */
function reopened(draft: Draft): Draft {
  const given = Object.entries(paramsOf(draft)).filter((entry): entry is [string, string] => entry[1] !== null)
  const params = new URLSearchParams(new URLSearchParams(given).toString())
  return draftOf((name) => params.get(name))
}

test('the URL of a question leads to the same question', () => {
  for (const draft of drafts)
    for (const isDynamic of [true, false]) {
      const question = questionOf(draft, isDynamic)
      expect(question).not.toBeNull()
      expect(questionOf(reopened(draft), isDynamic)).toEqual(question)
      expect(paramsOf(reopened(draft))).toEqual(paramsOf(draft))
    }
})

test('a shell reads the arguments of the command as they were meant', () => {
  for (const draft of drafts.filter(({ caller }) => caller === 'claims')) {
    const question = questionOf(draft, true)
    if (!question) throw new Error('no question')
    const command = commandOf(question).replace('npx plinth', () => 'printf "%s\\0"')
    const { stdout } = Bun.spawnSync(['sh', '-c', command])
    const [, , namespace, table, operation, ...options] = stdout.toString().split('\0').slice(0, -1)
    expect([namespace, table, operation]).toEqual([question.namespace, question.table, question.operation])
    const optionOf = (name: string) => options.find((option) => option.startsWith(`--${name}=`))?.slice(name.length + 3)
    expect(optionOf('instance')).toBe('acme')
    expect(optionOf('id')).toBe(question.id as string)
    expect(optionOf('row')).toBe(question.row && JSON.stringify(question.row))
    expect(optionOf('filter')).toBe(question.filter && JSON.stringify(question.filter))
    expect(optionOf('as')).toBe(`claims:${draft.claims}`)
  }
})

test('what is missing or wrong is named, and no question is sent', () => {
  const draft: Draft = { ...empty, namespace: 'shared', table: 'notes', operation: 'get' }
  expect(missingOf(empty, false)).toBe('Choose a table.')
  expect(missingOf(draft, true)).toContain('Name the instance')
  expect(missingOf(draft, false)).toContain('Name the record')
  expect(missingOf({ ...draft, source: 'row' }, false)).toBe('Paste the record.')
  expect(missingOf({ ...draft, caller: 'user' }, false)).toBe('Choose the user.')
  expect(questionOf(draft, false)).toBeNull()
  const pasted: Draft = { ...draft, source: 'row' }
  for (const row of ['[1]', '"x"', 'null', '{"a":', `{"a":"${'é'.repeat(1000)}"}`]) {
    expect(problemsOf({ ...pasted, row }).row).toBeString()
    expect(questionOf({ ...pasted, row }, false)).toBeNull()
  }
  expect(questionOf({ ...pasted, row: '{"a":1}' }, false)).toMatchObject({
    row: { a: 1 },
    caller: { kind: 'anonymous' },
  })
})
