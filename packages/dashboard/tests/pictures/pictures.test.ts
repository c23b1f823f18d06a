/** The pictures of the documents: each one that a document names is stored, and each stored one is named. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const folder = join(root, 'docs', 'images')
/** Of one picture, so that a clone stays small. */
const bytesMax = 100_000

const documents = [
  join(root, 'README.md'),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join(root, 'docs', path)),
]

test('the pictures that documents name are the ones that are stored', () => {
  const named = documents.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/!\[[^\]\n]+\]\([^)\s]*images\/([^)\s]+)\)/g)].map(([, name]) => name),
  )
  expect([...new Set(named)].sort()).toEqual(readdirSync(folder).sort())
})

test('each stored picture is one that `npm run pictures` takes', () => {
  const program = readFileSync(new URL('pictures-browser.test.ts', import.meta.url), 'utf8')
  const taken = [...program.matchAll(/await picture\('([\w-]+)'/g)].map(([, name]) => `dashboard-${name}.png`)
  expect(taken.sort()).toEqual(readdirSync(folder).sort())
})

test('no picture is large', () => {
  for (const name of readdirSync(folder)) {
    const { size } = statSync(join(folder, name))
    expect([name, size < bytesMax ? 'small' : size]).toEqual([name, 'small'])
  }
})
