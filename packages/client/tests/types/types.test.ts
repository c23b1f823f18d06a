/**
 * The client's types with both supported compilers, under the `tsconfig.json` of `npm create vite`: what must compile,
 * what must not, how the commonest mistakes read, and what a large configuration costs.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Compilation, type Compiler, compile, compilers, createProject, readFixture } from './compile.ts'
import { largeConfig, largeConfigUses } from './large-config.ts'

/**
 * Type instantiations that a configuration of 100 tables and 200 uses of it may cost; 5 s on two cores. Half of them
 * type the parameters of computed fields.
 */
const instantiationsMax = 1_400_000
const directive = '// @ts-expect-error'

const uses = readFixture('must-compile.ts')
const mistakes = readFixture('must-not-compile.ts')

/** Numbers of the lines after each directive, counted from 1. */
const markedLines = mistakes
  .split('\n')
  .flatMap((line, index) => (line.trim().startsWith(directive) ? [index + 2] : []))

/** Statements and list elements of the file, which are uses that compile. */
const useCount = uses
  .split('\n')
  .filter((line) => /^(export|const|\s{2}(true satisfies|posts|\{|tx\.))/.test(line)).length

test('at least 60 uses and 40 mistakes are tried', () => {
  expect(useCount).toBeGreaterThanOrEqual(60)
  expect(markedLines.length).toBeGreaterThanOrEqual(40)
})

describe.each(Object.keys(compilers) as Compiler[])('TypeScript %s', (compiler) => {
  const correct = createProject()
  const wrong = createProject()
  const large = createProject()
  let compiled: { readonly correct: Compilation; readonly wrong: Compilation; readonly large: Compilation }

  beforeAll(async () => {
    const config = readFixture('blog-config.ts')
    correct.write('blog-config.ts', config)
    correct.write('must-compile.ts', uses)
    correct.write('must-not-compile.ts', mistakes)
    wrong.write('blog-config.ts', config)
    wrong.write('must-not-compile.ts', mistakes.replaceAll(directive, '//'))
    large.write('plinth.config.ts', largeConfig(100))
    large.write('uses.ts', largeConfigUses(100))
    compiled = {
      correct: await compile(compiler, correct.folder),
      wrong: await compile(compiler, wrong.folder),
      large: await compile(compiler, large.folder),
    }
  }, 300_000)

  afterAll(() => {
    for (const project of [correct, wrong, large]) project.remove()
  })

  test('the configuration and all correct uses compile, and each mistake is one', () => {
    expect(compiled.correct.diagnostics).toEqual([])
  })

  test('each mistake is reported once, in its own line', () => {
    expect(compiled.wrong.diagnostics.map(({ line }) => line)).toEqual(markedLines)
  })

  test('the commonest mistakes have readable messages', () => {
    const messageOf = (code: string): string => {
      const line = mistakes.split('\n').findIndex((text) => text.trim() === `${code},`) + 1
      const found = compiled.wrong.diagnostics.find((diagnostic) => diagnostic.line === line)
      return found?.message ?? expect.unreachable(`no diagnostic for ${code}`)
    }
    // The compilers list the members of a union in different orders.
    const inOrder = (message: string): string =>
      message.replace(/["`][^"'`]+["`](?: \| ["`][^"'`]+["`])+/g, (union) => union.split(' | ').sort().join(' | '))
    expect(inOrder(messageOf("posts.where('titel', '==', 'x')"))).toBe(
      `Argument of type '"titel"' is not assignable to parameter of type '"authorId" | "body" | "comments" | "createdAt" | "editor_id" | "id" | "pinned" | "publishAt" | "rank" | "rating" | "status" | "tags" | "title" | "updatedAt" | "views" | \`author.\${string}\` | \`editor.\${string}\`'.`,
    )
    expect(inOrder(messageOf("posts.where('views', 'contains', 1)"))).toBe(
      `Argument of type '"contains"' is not assignable to parameter of type '"!=" | "<" | "<=" | "==" | ">" | ">=" | "in" | "not in"'.`,
    )
    expect(messageOf("posts.where('views', '>', '10')")).toBe(
      "Argument of type 'string' is not assignable to parameter of type 'number'.",
    )
    expect(messageOf("client.db('workspace')")).toBe('Expected 2 arguments, but got 1.')
    expect(messageOf("posts.insert({ title: 'x', authorId: 'a', titel: 'x' })")).toMatch(
      /^Object literal may only specify known properties, but 'titel' does not exist in type '\{ title: string; authorId: string; \}.*Did you mean to write 'title'\?$/,
    )
  })

  test(`100 tables and 200 uses cost at most ${instantiationsMax} instantiations`, () => {
    expect(compiled.large.diagnostics).toEqual([])
    expect(compiled.large.instantiations).toBeLessThanOrEqual(instantiationsMax)
  })
})
