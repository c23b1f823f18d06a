/** The code of the guide of the adapters compiles: every block is a file, whose path is in its first line. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { compile } from 'svelte/compiler'
import { compileScript, compileTemplate, parse } from 'vue/compiler-sfc'
import { parseFences } from '../../server/tests/harness/examples/documents.ts'

const repository = join(import.meta.dir, '../../..')
const blocks = parseFences(readFileSync(join(repository, 'docs/guides/react.md'), 'utf8')).map(({ text }) => ({
  path: /^(?:\/\/|<!--) (\S+)/.exec(text)?.[1] ?? '',
  text,
}))
const ending = (end: RegExp) => blocks.filter(({ path }) => end.test(path))
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-guide-'))
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Compiles files of TypeScript with the modules of the repository. Returns the errors. */
function typeCheck(files: readonly { path: string; text: string }[]): string {
  for (const { path, text } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const { compilerOptions } = JSON.parse(readFileSync(join(repository, 'tsconfig.json'), 'utf8'))
  const options = { ...compilerOptions, jsx: 'react-jsx', types: [], preserveSymlinks: true }
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
  expect(typeCheck([...ending(/\.tsx?$/), ...scripts])).toBe('')
})

test('the components of Svelte and Vue compile', () => {
  for (const { path, text } of ending(/\.svelte$/)) expect(compile(text, { filename: path }).warnings).toEqual([])
  for (const { path, text } of ending(/\.vue$/)) {
    const { descriptor, errors } = parse(text)
    expect(errors).toEqual([])
    expect(compileTemplate({ id: path, filename: path, source: descriptor.template?.content ?? '' }).errors).toEqual([])
  }
})
