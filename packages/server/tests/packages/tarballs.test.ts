/** What the published packages contain, and that they can be imported as their manifests say. */
import { afterAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { checkLinks } from '../../../../scripts/tidy/links.ts'
import { makeTarballs, type Tarball } from '../harness/packages/tarballs.ts'

const tarballs = makeTarballs()
const { plinth, client, create } = tarballs
afterAll(() => tarballs.remove())

const manifestOf = ({ files }: Tarball) => JSON.parse(files.get('package.json') ?? '{}')
const matching = ({ files }: Tarball, pattern: RegExp): string[] =>
  [...files.keys()].filter((path) => pattern.test(path))
const others = ({ files }: Tarball, pattern: RegExp): string[] =>
  [...files.keys()].filter((path) => !pattern.test(path))

describe('contents', () => {
  test('plinth has JavaScript, declarations, the launcher and documents, and nothing else', () => {
    const top = /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE)$/
    const below = /^(?:bin\/(?:plinth|bun)\.mjs|dist\/.+\.(?:js|d\.ts)|dist\/zod\.LICENSE|docs\/.+\.(?:md|json|png))$/
    const page = /^dashboard\/(?:index\.html|assets\/[\w-]+\.(?:js|css|svg)(?:\.br|\.gz)?)$/
    const expected = new RegExp(`${top.source}|${below.source}|${page.source}`)
    expect(others(plinth, expected)).toEqual([])
    expect([...plinth.files.keys()]).toContainValues([
      'LICENSE',
      'README.md',
      'bin/plinth.mjs',
      'bin/bun.mjs',
      'dist/main.js',
      'dist/config-define.js',
      'dist/config/define.d.ts',
      'dist/testing-test-server.js',
      'dist/testing/test-server.d.ts',
      'dist/engines-sandbox-sqlite-child.js',
      'dist/zod.LICENSE',
      'dashboard/index.html',
      'docs/guides/records.md',
      'docs/reference/errors.md',
    ])
    // Most of it is the dashboard, whose scripts and styles are there plain and compressed in two ways.
    expect(statSync(plinth.path).size).toBeLessThan(4 << 20)
  })

  test('plinth loads few files, all of them in one folder', () => {
    expect(matching(plinth, /^dist\/.+\/.+\.js$/)).toEqual([])
    expect(matching(plinth, /^dist\/.+\.js$/).length).toBeLessThan(150)
    expect(Object.keys(manifestOf(plinth).dependencies)).not.toContain('zod')
  })

  test('plinth-client has one JavaScript module and one declaration per source, and no dependency', () => {
    expect(others(client, /^(?:package\.json|README\.md|LICENSE|dist\/.+\.(?:js|d\.ts)|docs\/.+\.md)$/)).toEqual([])
    expect(matching(client, /^dist\/(?:index|all|core\/core|live\/live)\.js$/)).toHaveLength(4)
    const manifest = manifestOf(client)
    expect(manifest).toMatchObject({ sideEffects: false, type: 'module' })
    expect(Object.keys(manifest)).not.toContainAnyValues(['dependencies', 'optionalDependencies'])
    expect(statSync(client.path).size).toBeLessThan(128 << 10)
  })

  test('create-plinth has its program and the templates', () => {
    expect(others(create, /^(?:package\.json|README\.md|LICENSE|dist\/.+\.js|templates\/.+)$/)).toEqual([])
    expect(matching(create, /^templates\/[\w-]+\/package\.json$/)).toHaveLength(3)
    expect(manifestOf(create).dependencies).toBeUndefined()
  })

  test.each([plinth, client, create])(
    '$name has no tests, benchmarks, examples, sources or development settings',
    (it) => {
      const isTemplate = (path: string): boolean => path.startsWith('templates/')
      const unwanted = matching(it, /(?:^|\/)(?:tests?|bench|examples?|src|contract)\/|\.test\.|(?<!\.d)\.tsx?$|\.map$/)
      expect(unwanted.filter((path) => !isTemplate(path))).toEqual([])
      expect(Object.keys(manifestOf(it))).not.toContainAnyValues(['devDependencies', 'scripts', 'private'])
    },
  )

  test.each([plinth, client, create])(
    'every link in a document of $name leads to a file of the package',
    ({ files }) => {
      expect(checkLinks(files)).toEqual([])
    },
  )
})

const scanner = new Bun.Transpiler({ loader: 'js' })

/** Specifiers of imports, and of modules named by their URL. */
const importsIn = (path: string, text: string): string[] =>
  path.endsWith('.d.ts')
    ? [...text.matchAll(/(?:\bfrom |\bimport\(|^import )['"]([^'"\n]+)['"]/gm)].map(([, name = '']) => name)
    : [
        ...scanner.scanImports(text.replace(/^#!.*/, '')).map((found) => found.path),
        ...[...text.matchAll(/\bnew URL\(\s*['"](\.[^'"]+\.[jt]s)['"]/g)].map(([, name = '']) => name),
      ]

describe.each([plinth, client, create])('modules of $name', (it) => {
  const { dependencies, optionalDependencies, peerDependencies } = manifestOf(it)
  const installed = new Set(Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
  const modules = matching(it, /^(?:bin|dist)\/.+\.(?:m?js|d\.ts)$/)
  /** What declarations may import: types of functions are those of the client. */
  const isTyped = (name: string): boolean =>
    installed.has(name) && (name === 'plinth-client' || peerDependencies?.[name])
  const importsOf = (path: string): string[] => importsIn(path, it.files.get(path) ?? '')

  test('are found', () => {
    expect(modules.length).toBeGreaterThan(0)
  })

  test('name files of the package by their full names', () => {
    const missing = modules.flatMap((path) =>
      importsOf(path)
        .filter((name) => name.startsWith('.'))
        .map((name) => posix.join(posix.dirname(path), name))
        .map((target) => (path.endsWith('.d.ts') ? target.replace(/\.js$/, '.d.ts') : target))
        .filter((target) => !it.files.has(target))
        .map((target) => `${path}: ${target}`),
    )
    expect(missing).toEqual([])
  })

  test('import only declared dependencies, declarations none but peers and the client', () => {
    const isBuiltIn = (name: string): boolean => /^(?:node|bun):/.test(name) || builtinModules.includes(name)
    const undeclared = modules.flatMap((path) =>
      importsOf(path)
        .filter((name) => !name.startsWith('.'))
        .filter((name) => path.endsWith('.d.ts') || !isBuiltIn(name))
        .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
        .filter((name) => !(path.endsWith('.d.ts') ? isTyped(name) : installed.has(name)))
        .map((name) => `${path}: ${name}`),
    )
    expect(undeclared).toEqual([])
  })
})

test.each([plinth, client, create])('publint finds nothing to criticize in $name', async ({ path }) => {
  const tarball = await Bun.file(path).arrayBuffer()
  const { messages } = await publint({ pack: { tarball }, strict: true })
  expect(messages).toEqual([])
})

/** ES modules only: resolution as of Node 10 knows no `exports`, and CommonJS loads ES modules since Node 20.19. */
const esmOnlyIgnores = new Set(['node10', 'node16-cjs'])

test.each([plinth, client])('are-the-types-wrong finds nothing wrong in $name', async ({ path }) => {
  const result = await checkPackage(createPackageFromTarballData(await Bun.file(path).bytes()))
  if (!result.types) throw new Error('has no types')
  expect(Object.keys(result.entrypoints).length).toBeGreaterThan(0)
  const relevant = result.problems.filter(
    (problem) => !('resolutionKind' in problem && esmOnlyIgnores.has(problem.resolutionKind)),
  )
  expect(relevant).toEqual([])
})
