/**
 * The house keeps its own rules: each check of `scripts/tidy` on the whole repository, and on small bad ones, since a
 * check that finds nothing may also be one that looks at nothing.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { codeOf, importsOf, namedFilesOf } from '../scripts/tidy/code.ts'
import { readRepository } from '../scripts/tidy/repository.ts'
import { tidyChecks } from '../scripts/tidy.ts'

const repository = readRepository(join(import.meta.dir, '..'))

describe('the repository', () => {
  test.each(Object.entries(tidyChecks))('%s', (_, check) => {
    expect(check(repository)).toEqual([])
  })

  test('is all there', () => {
    for (const path of ['src/main.ts', 'tests/tidy.test.ts', 'scripts/bun.mjs', 'README.md', 'package.json', '.ci/run'])
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
    ['src/base/a.ts', '../engines/sql.ts'],
    ['src/query/a.ts', '../access/rule.ts'],
    ['src/http/a.ts', '../features/records/index.ts'],
    ['src/features/records/a.ts', '../../app.ts'],
    ['src/config/a.test.ts', '../http/handle.ts'],
    ['src/app.ts', './cli/dev.ts'],
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
      'src/http/a.ts': `import a from './b.ts'\nimport '../base/c.ts'\nimport '../errors.ts'\nimport 'zod'`,
      'src/cli/a.ts': `import '../app.ts'`,
      'tests/a.ts': `import '../src/app.ts'`,
    }
    expect(mistakes(rule, files)).toEqual([])
  })

  test('src stands on its own and in its folders', () => {
    expect(mistakes(rule, { 'src/app.ts': `import '../tests/harness/a.ts'` })[0]).toEndWith('src stands on its own')
    expect(mistakes(rule, { 'src/scratch.ts': '' })[0]).toContain('stands in no folder of src that the house has')
  })

  test('features do not import each other', () => {
    const text = `import '../records/index.ts'\nimport './table.ts'`
    expect(mistakes('features do not import each other', { 'src/features/users/a.ts': text })).toEqual([
      'src/features/users/a.ts: imports src/features/records/index.ts; features do not know each other; ' +
        'let app.ts hand users the function it needs',
    ])
  })

  test('adapters are named where engines are opened', () => {
    const files = {
      'src/app.ts': `import './engines/cluster-memory.ts'\nimport './engines/sql.ts'\nimport './engines/sql-text.ts'`,
      'src/features/records/a.ts': `import '../../engines/sqlite.ts'`,
      'src/engines/open.ts': `import './sqlite.ts'`,
      'src/engines/sqlite.ts': `import './sqlite-writer.ts'`,
      'src/engines/postgres.ts': `import './sqlite-writer.ts'`,
      'src/engines/contract/sql.ts': `import '../sqlite.ts'`,
      'tests/a.test.ts': `import '../src/engines/sqlite.ts'`,
    }
    const found = mistakes('adapters are named only where engines are opened', files)
    expect(found.map((line) => line.split(': ')[0])).toEqual([
      'src/app.ts',
      'src/features/records/a.ts',
      'src/engines/postgres.ts',
    ])
  })

  test('cycles, also by way of types and others', () => {
    const files = {
      'src/base/a.ts': `import './b.ts'`,
      'src/base/b.ts': `import type { C } from './c.ts'`,
      'src/base/c.ts': `import './a.ts'`,
      'src/base/d.ts': `import './c.ts'`,
    }
    expect(mistakes('imports make no cycle', files)).toEqual([
      'src/base/a.ts → src/base/b.ts → src/base/c.ts → src/base/a.ts: a cycle; move what they share to a file of its own',
    ])
  })

  test('files that nothing leads to, or only their own test', () => {
    const files = {
      'src/main.ts': `import './app.ts'\nconst url = new URL('./engines/work.ts', import.meta.url)`,
      'src/app.ts': '',
      'src/engines/work.ts': '',
      'src/engines/contract/sql.ts': '',
      'src/engines/sqlite.test.ts': `import './contract/sql.ts'`,
      'src/base/lonely.ts': '',
      'src/base/tested.ts': '',
      'src/base/tested.test.ts': `import './tested.ts'`,
      'tests/harness/used.ts': '',
      'tests/harness/unused.ts': '',
      'tests/a.test.ts': `import './harness/used.ts'`,
      'bench/run.ts': `spawn(['bench/load.ts'])`,
      'bench/load.ts': '',
    }
    expect(mistakes('every file is used', files).map((line) => line.split(': ')[0])).toEqual([
      'src/base/lonely.ts',
      'src/base/tested.ts',
      'tests/harness/unused.ts',
    ])
  })
})

describe('the runtime and the environment', () => {
  const rule = 'the runtime and the environment have their places'

  test.each([
    ['src/config/a.ts', 'const a = 1\nBun.build()', 'src/config/a.ts:2: the runtime is used only in'],
    ['src/features/a.ts', `import { serve } from 'bun'`, 'src/features/a.ts: the runtime is used only in'],
    ['src/http/handle.ts', `import 'x'\nimport { Database } from 'bun:sqlite'`, 'src/http/handle.ts: the runtime'],
    ['src/app.ts', 'const { A } = process.env', 'src/app.ts:1: only config/load.ts reads the environment'],
    ['src/http/handle.ts', 'await exchange.request.json()', 'src/http/handle.ts:1: only http/request-body.ts reads'],
    ['src/http/form.ts', 'for await (const a of request.body);', 'src/http/form.ts:1: only http/request-body.ts reads'],
    ['src/features/a.ts', 'const a = async (call: Request) => 1', 'src/features/a.ts:1: a `Request` stays between'],
  ])('%s with %j', (path, text, message) => {
    const found = mistakes(rule, { [path]: text })
    expect(found).toHaveLength(1)
    expect(found[0]).toStartWith(message)
  })

  test('have their places, and may be spoken of', () => {
    const files = {
      'src/base/a.ts': 'Bun.hash()',
      'src/http/server.ts': 'Bun.serve()',
      'src/config/load.ts': 'process.env.A',
      'src/http/request-body.ts': 'async (request: Request) => request.bytes()',
      'src/config/b.test.ts': `import { test } from 'bun:test'\nBun.spawn(process.env)`,
      'src/app.ts': `// Bun.serve\nconst a = 'process.env' + \`Bun.x \${'Bun.y'}\``,
      'scripts/a.ts': 'Bun.spawn(process.env)',
    }
    expect(mistakes(rule, files)).toEqual([])
  })
})

describe('style', () => {
  test('long lines and long files', () => {
    const long = 'x'.repeat(121)
    const files = {
      'src/base/a.ts': `${long}\n // ${long}'\n * ${long}"\nsay('${long}')\nsql\`${long}\``,
      'tests/b.ts': 'x\n'.repeat(401),
      'c.md': long,
    }
    expect(mistakes('files and lines have a bound', files)).toEqual([
      'src/base/a.ts:1: longer than 120 characters; break it',
      'src/base/a.ts:2: longer than 120 characters; break it',
      'src/base/a.ts:3: longer than 120 characters; break it',
      'tests/b.ts: 401 lines, more than 400; find the second noun in it and give it a file',
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
    expect(mistakes('file names say what a file owns', { [`src/base/${name}`]: '' })).toHaveLength(1)
  })

  test.each(['service-keys.ts', 'to-sql.test.ts', 'plinth.config.ts', 'bun.mjs', 's3.ts'])(
    '%s is a good name',
    (name) => {
      expect(mistakes('file names say what a file owns', { [`src/base/${name}`]: '' })).toEqual([])
    },
  )

  test('the opening comment', () => {
    const files = {
      'src/base/a.ts': `import './b.ts'\n/** Late. */`,
      'src/base/b.ts': '/** A thing. */',
      'src/base/b.test.ts': `import 'bun:test'`,
    }
    expect(mistakes('every file of src says what it is for', files)).toEqual([
      'src/base/a.ts: begins without a comment; say what it owns and what it leaves to whom',
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
    expect(mistakes('nothing is left unfinished, untyped or switched off', { 'src/base/a.ts': `\n${text}` })).toEqual([
      expect.stringMatching(/^src\/base\/a\.ts:2: ".*"; /),
    ])
  })

  test('what may look like it', () => {
    const files = {
      'examples/a/plinth.config.ts': 'export default defineConfig({})',
      'src/base/a.ts': `const a = 'export default', b = "as any", only = cursor.skip(1) // as any\n\`\nexport default\``,
    }
    expect(mistakes('nothing is left unfinished, untyped or switched off', files)).toEqual([])
  })

  test('what belongs to one machine', () => {
    const files = {
      'docs/a.md': `see /${'home'}/ada/plinth`,
      'src/a.ts': `'https://${'registry'}.npmjs.org/bun'`,
      'b.md': 'GET /api/home/x, ./work/x, https://example.org/root/x',
    }
    expect(mistakes('nothing belongs to one machine', files)).toEqual([
      'docs/a.md:1: a path of one machine; make it relative, or a temporary folder',
      "src/a.ts:1: the host of a registry; leave it to each machine's npm",
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
