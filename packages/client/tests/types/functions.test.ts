/** The functions that `plinth types --url` writes type `plinth.call` and `plinth.stream` of a program elsewhere. */
import { afterAll, describe, expect, test } from 'bun:test'
import { formatDeclarations } from '../../../server/src/cli/type-declarations.ts'
import { type Compiler, compile, compilers, createProject } from './compile.ts'

const input = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    kind: { enum: ['a', 'b'] },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['id'],
}
const source = {
  tables: {},
  namespaces: {},
  buckets: [],
  rooms: {},
  functions: {
    rename: {
      input,
      output: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      streams: false,
    },
    plain: { input: null, output: null, streams: false },
    ticks: { input: { type: 'number' }, output: { type: 'string' }, streams: true },
  },
}

const program = `
import type { Client } from 'plinth-client'
import type { Config, Functions } from './plinth'
declare const client: Client<Config, Functions>
export async function read() {
  const { n } = await client.call('rename', { id: '1' })
  const sum: number = n + 1
  // @ts-expect-error a member that results do not have
  const { missing } = await client.call('rename', { id: '1' })
  for await (const value of client.stream('ticks', 3)) value.toUpperCase()
  // @ts-expect-error values of another type
  for await (const value of client.stream('ticks', 3)) value.toFixed()
  return [sum, missing, await client.call('plain')]
}
export const results = [
  client.call('rename', { id: '1', kind: 'a', tags: ['x'] }),
  client.call('plain'),
  client.call('plain', { any: 1 }),
  client.stream('ticks', 3),
  // @ts-expect-error a function that does not exist
  client.call('remove'),
  // @ts-expect-error a member that is required
  client.call('rename', { kind: 'a' }),
  // @ts-expect-error a value that is not listed
  client.call('rename', { id: '1', kind: 'c' }),
  // @ts-expect-error a member of another type
  client.call('rename', { id: '1', tags: [1] }),
  // @ts-expect-error an input that is required
  client.call('rename'),
  // @ts-expect-error a function that yields
  client.call('ticks', 3),
  // @ts-expect-error a function that answers once
  client.stream('plain'),
]
`

describe.each(Object.keys(compilers) as Compiler[])('TypeScript %s', (compiler) => {
  const project = createProject()
  afterAll(() => project.remove())

  test('[FN-20] names, inputs and results of functions are typed', async () => {
    project.write('plinth.d.ts', formatDeclarations(source))
    project.write('program.ts', program)
    const { diagnostics } = await compile(compiler, project.folder)
    // The client's sources are compiled under the options of Vite's template here.
    expect(diagnostics.filter(({ file }) => file.startsWith('src/'))).toEqual([])
  }, 60_000)
})
