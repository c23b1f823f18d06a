/**
 * The code of the guides compiles. In the guide of the adapters every block is a file, whose path is in its first line;
 * elsewhere the blocks that run are one program.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { compile } from 'svelte/compiler'
import { compileScript, compileTemplate, parse } from 'vue/compiler-sfc'
import { parseFences, programOf } from '../../server/tests/harness/examples/documents.ts'

const repository = join(import.meta.dir, '../../..')
const guides = join(repository, 'docs/guides')
const blocks = parseFences(readFileSync(join(guides, 'react.md'), 'utf8')).map(({ text }) => ({
  path: /^(?:\/\/|<!--) (\S+)/.exec(text)?.[1] ?? '',
  text,
}))
const ending = (end: RegExp) => blocks.filter(({ path }) => end.test(path))
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-guide-'))
  for (const name of ['node_modules', 'examples']) symlinkSync(join(repository, name), join(folder, name))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Compiles files of TypeScript with the modules of the repository, and these options. Returns the errors. */
function typeCheck(files: readonly { path: string; text: string }[], own: object): string {
  for (const { path, text } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const { compilerOptions } = JSON.parse(readFileSync(join(repository, 'tsconfig.json'), 'utf8'))
  const options = { ...compilerOptions, jsx: 'react-jsx', preserveSymlinks: true, ...own }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, files: files.map(({ path }) => path) }),
  )
  const tsc = join(repository, 'node_modules/typescript/bin/tsc')
  return Bun.spawnSync([process.execPath, tsc, '-p', folder], { cwd: folder }).stdout.toString()
}

test('every block names its file', () => {
  expect(blocks.length).toBeGreaterThan(8)
  expect(blocks.filter(({ path }) => path === '')).toEqual([])
})

test('TypeScript and React, and the scripts of Svelte and Vue, are correct', () => {
  const scripts = ending(/\.vue$/).map(({ path, text }) => {
    const { descriptor } = parse(text)
    return { path: `${path}.ts`, text: compileScript(descriptor, { id: path }).content }
  })
  expect(scripts.length).toBe(1)
  expect(typeCheck([...ending(/\.tsx?$/), ...scripts], { types: [] })).toBe('')
})

test('the programs of the guides are correct', () => {
  const pages = readdirSync(guides).filter((name) => name.endsWith('.md'))
  const programs = pages.flatMap((name) => {
    const text = programOf(readFileSync(join(guides, name), 'utf8'))
    // As a module, since some only declare.
    return text === '' ? [] : [{ path: `${name}.ts`, text: `${text}\nexport {}\n` }]
  })
  expect(programs.length).toBeGreaterThan(10)
  // Some blocks only show how a function is written.
  expect(typeCheck(programs, { types: ['bun'], noUnusedLocals: false })).toBe('')
})

test('the components of Svelte and Vue compile', () => {
  for (const { path, text } of ending(/\.svelte$/)) expect(compile(text, { filename: path }).warnings).toEqual([])
  for (const { path, text } of ending(/\.vue$/)) {
    const { descriptor, errors } = parse(text)
    expect(errors).toEqual([])
    expect(compileTemplate({ id: path, filename: path, source: descriptor.template?.content ?? '' }).errors).toEqual([])
  }
})
