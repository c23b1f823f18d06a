/**
 * The house keeps its own rules: each check of `scripts/tidy` on the whole repository, and on small bad ones, since a
 * check that finds nothing may also be one that looks at nothing.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { importsOf } from '../../../../scripts/tidy/code.ts'
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
      expect.stringMatching(/which is to the right of it on the line .*; pass it in from app\.ts/),
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

  test('src imports nothing from outside, and every file is in a known folder', () => {
    expect(mistakes(rule, { 'packages/server/src/app.ts': `import '../tests/harness/a.ts'` })[0]).toEndWith(
      'src must not import from outside',
    )
    expect(mistakes(rule, { 'packages/server/src/scratch.ts': '' })[0]).toContain('is in no known folder of src')
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
})

describe('the runtime and the bodies of requests', () => {
  test.each([
    ['packages/server/src/features/a.ts', `import { serve } from 'bun'`],
    ['packages/server/src/http/handle.ts', `import 'x'\nimport { Database } from 'bun:sqlite'`],
  ])('%s may not contain %j', (path, text) => {
    expect(mistakes('modules of the runtime are imported in base, engines and the listener', { [path]: text })).toEqual(
      [expect.stringMatching(/only http\/server\.ts, engines\/, base\/ and host\/ use the runtime$/)],
    )
  })

  test.each([
    ['packages/server/src/http/handle.ts', 'await exchange.request.json()'],
    ['packages/server/src/http/form.ts', 'for await (const a of request.body);'],
  ])('%s reads no body with %j', (path, text) => {
    expect(mistakes('one file reads the bodies of requests', { [path]: text })).toEqual([
      expect.stringMatching(/:1: only http\/input\/request-body\.ts reads/),
    ])
  })

  test('comments, tests and the files that may are left alone', () => {
    const files = {
      'packages/server/src/base/a.ts': `import 'bun:sqlite'`,
      'packages/server/src/config/b.test.ts': `import { test } from 'bun:test'`,
      'packages/server/src/http/input/request-body.ts': 'request.bytes()',
      'packages/server/src/app.ts': '// Not request.json().\n/**\n * request.body\n */',
    }
    expect(mistakes('modules of the runtime are imported in base, engines and the listener', files)).toEqual([])
    expect(mistakes('one file reads the bodies of requests', files)).toEqual([])
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

  test('a folder of more than 20 files is refused, except for the decisions', () => {
    const inFolder = (folder: string, count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`${folder}/page-${n}.md`, '']))
    const files = { ...inFolder('docs/a', 21), ...inFolder('docs/a/b', 20), ...inFolder('docs/decisions', 21) }
    expect(mistakes('folders have a bound', files)).toEqual(['docs/a: 21 files, more than 20; split it by subject'])
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

  test.each([`// ${'TO'}DO: later`, `/** ${'FIX'}ME */`, `// @ts-${'ignore'}`])('%s', (text) => {
    expect(mistakes('nothing is left unfinished', { 'packages/server/src/base/a.ts': `\n${text}` })).toEqual([
      expect.stringMatching(/^packages\/server\/src\/base\/a\.ts:2: ".*"; /),
    ])
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
  test('imports in every form', () => {
    const text = [
      `import './a.ts'`,
      `import b, {\n  type B,\n} from "./b.ts"`,
      `export * from './c.ts'`,
      `const d = () => import('./d.ts')`,
      `export const e = 'from' // './f.ts'`,
    ].join('\n')
    expect(importsOf(text)).toEqual(['./a.ts', './b.ts', './c.ts', './d.ts'])
  })
})
