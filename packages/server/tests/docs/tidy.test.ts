/**
 * The house keeps its own rules: each check of `scripts/tidy` on the whole repository, and on small bad ones, since a
 * check that finds nothing may also be one that looks at nothing.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { codeOf, importsOf, namedFilesOf } from '../../../../scripts/tidy/code.ts'
import { readRepository } from '../../../../scripts/tidy/repository.ts'
import { tidyChecks } from '../../../../scripts/tidy.ts'

const repository = readRepository(join(import.meta.dir, '../../../..'))

describe('the repository', () => {
  test.each(Object.entries(tidyChecks))('%s', (_, check) => {
    expect(check(repository)).toEqual([])
  })

  test('is all there', () => {
    for (const path of [
      'packages/server/src/main.ts',
      'packages/server/tests/docs/tidy.test.ts',
      'scripts/run.mjs',
      'README.md',
      'package.json',
      '.ci/run',
    ])
      expect(repository.has(path)).toBe(true)
  })
})

/** What a check says of files that are fine but for what the test puts in them. */
function mistakes(rule: keyof typeof tidyChecks, files: Record<string, string>): string[] {
  return tidyChecks[rule]?.(new Map(Object.entries(files))) ?? []
}

describe('imports', () => {
  const rule = 'imports go left on the dependency line'

  test.each([
    ['packages/server/src/base/a.ts', '../engines/sql.ts'],
    ['packages/server/src/query/a.ts', '../access/rule.ts'],
    ['packages/server/src/http/a.ts', '../features/records/index.ts'],
    ['packages/server/src/features/records/a.ts', '../../app.ts'],
    ['packages/server/src/config/a.test.ts', '../http/handle.ts'],
    ['packages/server/src/app.ts', './cli/dev.ts'],
  ])('%s may not import %s', (path, target) => {
    expect(mistakes(rule, { [path]: `import { a } from '${target}'` })).toEqual([
      expect.stringMatching(/which stands right of it on the line .*; hand it in from app\.ts/),
    ])
    expect(mistakes(rule, { [path]: `import type {\n  A,\n} from '${target}'` })).toHaveLength(1)
    expect(mistakes(rule, { [path]: `export { a } from '${target}'` })).toHaveLength(1)
    expect(mistakes(rule, { [path]: `const a = await import('${target}')` })).toHaveLength(1)
  })

  test('to the left, to the same folder, to what all share, and from elsewhere are fine', () => {
    const files = {
      'packages/server/src/http/a.ts': `import a from './b.ts'\nimport '../base/c.ts'\nimport '../errors.ts'\nimport 'zod'`,
      'packages/server/src/cli/a.ts': `import '../app.ts'`,
      'packages/server/tests/a.ts': `import '../src/app.ts'`,
    }
    expect(mistakes(rule, files)).toEqual([])
  })

  test('src stands on its own and in its folders', () => {
    expect(mistakes(rule, { 'packages/server/src/app.ts': `import '../tests/harness/a.ts'` })[0]).toEndWith(
      'src stands on its own',
    )
    expect(mistakes(rule, { 'packages/server/src/scratch.ts': '' })[0]).toContain(
      'stands in no folder of src that the house has',
    )
  })

  test('features do not import each other', () => {
    const text = `import '../records/index.ts'\nimport './table.ts'`
    expect(mistakes('features do not import each other', { 'packages/server/src/features/users/a.ts': text })).toEqual([
      'packages/server/src/features/users/a.ts: imports packages/server/src/features/records/index.ts; features do not know each other; ' +
        'let app.ts hand users the function it needs',
    ])
  })

  test('adapters are named where engines are opened', () => {
    const files = {
      'packages/server/src/app.ts': `import './engines/cluster-memory.ts'\nimport './engines/sql.ts'\nimport './engines/sql-text.ts'`,
      'packages/server/src/features/records/a.ts': `import '../../engines/sqlite.ts'`,
      'packages/server/src/engines/open.ts': `import './sqlite.ts'`,
      'packages/server/src/engines/sqlite.ts': `import './sqlite-writer.ts'`,
      'packages/server/src/engines/postgres.ts': `import './sqlite-writer.ts'`,
      'packages/server/src/engines/contract/sql.ts': `import '../sqlite.ts'`,
      'packages/server/tests/a.test.ts': `import '../src/engines/sqlite.ts'`,
    }
    const found = mistakes('adapters are named only where engines are opened', files)
    expect(found.map((line) => line.split(': ')[0])).toEqual([
      'packages/server/src/app.ts',
      'packages/server/src/features/records/a.ts',
      'packages/server/src/engines/postgres.ts',
    ])
  })

  test('cycles, also by way of types and others', () => {
    const files = {
      'packages/server/src/base/a.ts': `import './b.ts'`,
      'packages/server/src/base/b.ts': `import type { C } from './c.ts'`,
      'packages/server/src/base/c.ts': `import './a.ts'`,
      'packages/server/src/base/d.ts': `import './c.ts'`,
    }
    expect(mistakes('imports make no cycle', files)).toEqual([
      'packages/server/src/base/a.ts → packages/server/src/base/b.ts → packages/server/src/base/c.ts → packages/server/src/base/a.ts: a cycle; move what they share to a file of its own',
    ])
  })

  test('files that nothing leads to, or only their own test', () => {
    const files = {
      'packages/server/src/main.ts': `import './app.ts'\nconst url = new URL('./engines/work.ts', import.meta.url)`,
      'packages/server/src/app.ts': '',
      'packages/server/src/engines/work.ts': '',
      'packages/server/src/engines/contract/sql.ts': '',
      'packages/server/src/engines/sqlite.test.ts': `import './contract/sql.ts'`,
      'packages/server/src/base/lonely.ts': '',
      'packages/server/src/base/tested.ts': '',
      'packages/server/src/base/tested.test.ts': `import './tested.ts'`,
      'packages/server/tests/harness/used.ts': '',
      'packages/server/tests/harness/unused.ts': '',
      'packages/server/tests/a.test.ts': `import './harness/used.ts'`,
      'bench/run.ts': `spawn(['bench/load.ts'])`,
      'bench/load.ts': '',
    }
    expect(mistakes('every file is used', files).map((line) => line.split(': ')[0])).toEqual([
      'packages/server/src/base/lonely.ts',
      'packages/server/src/base/tested.ts',
      'packages/server/tests/harness/unused.ts',
    ])
  })
})

describe('the runtime and the environment', () => {
  const rule = 'the runtime and the environment have their places'

  test.each([
    [
      'packages/server/src/config/a.ts',
      'const a = 1\nBun.build()',
      'packages/server/src/config/a.ts:2: the runtime is used only in',
    ],
    [
      'packages/server/src/features/a.ts',
      `import { serve } from 'bun'`,
      'packages/server/src/features/a.ts: the runtime is used only in',
    ],
    [
      'packages/server/src/http/handle.ts',
      `import 'x'\nimport { Database } from 'bun:sqlite'`,
      'packages/server/src/http/handle.ts: the runtime',
    ],
    [
      'packages/server/src/app.ts',
      'const { A } = process.env',
      'packages/server/src/app.ts:1: only config/load.ts reads the environment',
    ],
    [
      'packages/server/src/http/handle.ts',
      'await exchange.request.json()',
      'packages/server/src/http/handle.ts:1: only http/input/request-body.ts reads',
    ],
    [
      'packages/server/src/http/form.ts',
      'for await (const a of request.body);',
      'packages/server/src/http/form.ts:1: only http/input/request-body.ts reads',
    ],
    [
      'packages/server/src/features/a.ts',
      'const a = async (call: Request) => 1',
      'packages/server/src/features/a.ts:1: a `Request` stays between',
    ],
  ])('%s with %j', (path, text, message) => {
    const found = mistakes(rule, { [path]: text })
    expect(found).toHaveLength(1)
    expect(found[0]).toStartWith(message)
  })

  test('have their places, and may be spoken of', () => {
    const files = {
      'packages/server/src/base/a.ts': 'Bun.hash()',
      'packages/server/src/http/server.ts': 'Bun.serve()',
      'packages/server/src/config/load.ts': 'process.env.A',
      'packages/server/src/http/input/request-body.ts': 'async (request: Request) => request.bytes()',
      'packages/server/src/config/b.test.ts': `import { test } from 'bun:test'\nBun.spawn(process.env)`,
      'packages/server/src/app.ts': `// Bun.serve\nconst a = 'process.env' + \`Bun.x \${'Bun.y'}\``,
      'scripts/a.ts': 'Bun.spawn(process.env)',
    }
    expect(mistakes(rule, files)).toEqual([])
  })
})

describe('style', () => {
  test('long lines and long files', () => {
    const long = 'x'.repeat(121)
    const files = {
      'packages/server/src/base/a.ts': `${long}\n // ${long}'\n * ${long}"\nsay('${long}')\nsql\`${long}\``,
      'packages/server/tests/b.ts': 'x\n'.repeat(401),
      'c.md': long,
    }
    expect(mistakes('files and lines have a bound', files)).toEqual([
      'packages/server/src/base/a.ts:1: longer than 120 characters; break it',
      'packages/server/src/base/a.ts:2: longer than 120 characters; break it',
      'packages/server/src/base/a.ts:3: longer than 120 characters; break it',
      'packages/server/tests/b.ts: 401 lines, more than 400; find the second noun in it and give it a file',
    ])
    expect(mistakes('files and lines have a bound', { 'a.ts': `${'x'.repeat(120)}\n`.repeat(400) })).toEqual([])
  })

  test.each([
    'utils.ts',
    'sql-helpers.ts',
    'room-manager.ts',
    'push-service.ts',
    'common.test.ts',
    'myFile.ts',
    'a_b.ts',
  ])('the name %s', (name) => {
    expect(mistakes('file names say what a file owns', { [`packages/server/src/base/${name}`]: '' })).toHaveLength(1)
  })

  test.each(['service-keys.ts', 'to-sql.test.ts', 'plinth.config.ts', 'bun.mjs', 's3.ts'])(
    '%s is a good name',
    (name) => {
      expect(mistakes('file names say what a file owns', { [`packages/server/src/base/${name}`]: '' })).toEqual([])
    },
  )

  test('the opening comment', () => {
    const files = {
      'packages/server/src/base/a.ts': `import './b.ts'\n/** Late. */`,
      'packages/server/src/base/b.ts': '/** A thing. */',
      'packages/server/src/base/b.test.ts': `import 'bun:test'`,
    }
    expect(mistakes('every file of src says what it is for', files)).toEqual([
      'packages/server/src/base/a.ts: begins without a comment; say what it owns and what it leaves to whom',
    ])
  })

  test.each([
    `// ${'TO'}DO: later`,
    `/** ${'FIX'}ME */`,
    `// @ts-${'ignore'}`,
    'const a = b as any',
    'test.only(a)',
    'describe.skip(a)',
    'test.each(a).skip(b)'.replace('(a)', ''),
    'export default {}',
  ])('%s', (text) => {
    expect(
      mistakes('nothing is left unfinished, untyped or switched off', { 'packages/server/src/base/a.ts': `\n${text}` }),
    ).toEqual([expect.stringMatching(/^packages\/server\/src\/base\/a\.ts:2: ".*"; /)])
  })

  test('what may look like it', () => {
    const files = {
      'examples/a/plinth.config.ts': 'export default defineConfig({})',
      'packages/server/src/base/a.ts': `const a = 'export default', b = "as any", only = cursor.skip(1) // as any\n\`\nexport default\``,
    }
    expect(mistakes('nothing is left unfinished, untyped or switched off', files)).toEqual([])
  })

  test('what belongs to one machine', () => {
    const files = {
      'docs/a.md': `see /${'home'}/ada/plinth`,
      'packages/server/src/a.ts': `'https://${'registry'}.npmjs.org/bun'`,
      'b.md': 'GET /api/home/x, ./work/x, https://example.org/root/x',
    }
    expect(mistakes('nothing belongs to one machine', files)).toEqual([
      'docs/a.md:1: a path of one machine; make it relative, or a temporary folder',
      "packages/server/src/a.ts:1: the host of a registry; leave it to each machine's npm",
    ])
  })

  test('links', () => {
    const files = {
      'README.md': [
        '[a](docs/a.md) [b](docs/b.md) [c](docs/a.md#what-you-write) [d](docs/a.md#none) [e](#top)',
        '[f](https://example.org) [g](docs) `[h](none.md)`',
        '```\n[i](none.md)\n```',
        '# Top',
      ].join('\n'),
      'docs/a.md': '## What you *write*\n[up](../README.md) ![x](none.png)',
    }
    expect(mistakes('links lead somewhere', files)).toEqual([
      'README.md: the link docs/b.md leads nowhere',
      'README.md: the link docs/a.md#none names a heading that docs/a.md does not have',
      'docs/a.md: the link none.png leads nowhere',
    ])
  })
})

describe('reading code', () => {
  test.each([
    [`a // b\nc`, 'a     \nc'],
    [`a /* b\n */ c`, 'a     \n    c'],
    [`a('b', "c\\"d")`, 'a(   ,       )'],
    ['a`b$' + '{c + `d$' + '{e}`}f`g', 'a    c +     e     g'],
    ['`$' + '{{ a: 1 }.a}` + b', '   { a: 1 }.a   + b'],
    [`a / b / c; d(/'/g) // e`, 'a / b / c; d(   g)     '],
    [`return /[/']/.test(a)`, 'return       .test(a)'],
    [`'never closed\na`, `'never closed\na`],
  ])('%j', (text, code) => {
    expect(codeOf(text)).toBe(code)
  })

  test('imports in every form', () => {
    const text = [
      `import './a.ts'`,
      `import b, {\n  type B,\n} from "./b.ts"`,
      `export * from './c.ts'`,
      `const d = () => import('./d.ts')`,
      `export const e = 'from' // './f.ts'`,
    ].join('\n')
    expect(importsOf(text)).toEqual(['./a.ts', './b.ts', './c.ts', './d.ts'])
    expect(namedFilesOf(`new URL('./w.ts', x), "bench/y.mjs", 'z.json'`)).toEqual(['./w.ts', 'bench/y.mjs'])
  })
})
