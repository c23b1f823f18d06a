/**
 * What the types of `rpc` with a schema of the result accept and refuse. The compiler is the test: `tsc` fails on valid
 * code that they refuse, and on an `@ts-expect-error` that is not followed by an error.
 */
import { expect, test } from 'bun:test'
import { z } from 'zod'
import type { RpcFunction } from '../../../src/config/sections/functions/exported.ts'
import { functionsFor } from '../../../src/config/sections/functions/functions-for.ts'

const { rpc } = functionsFor()
const output = z.object({ at: z.string().transform((text) => text.length) })

const valid = [
  rpc({ output }, () => ({ at: 'now' })) satisfies RpcFunction<unknown, { at: number }>,
  rpc({ output, input: z.number() }, async (n) => ({ at: n.toFixed() })) satisfies RpcFunction<number, { at: number }>,
  rpc({ output: z.number() }, async function* () {
    yield 1
  }) satisfies RpcFunction<unknown, AsyncIterable<number>>,
  rpc({}, () => 'any result') satisfies RpcFunction<unknown, string>,
]

const refused = [
  // @ts-expect-error a result of another type
  rpc({ output }, () => ({ at: 7 })),
  // @ts-expect-error no result
  rpc({ output }, () => undefined),
  // @ts-expect-error values of another type
  rpc({ output: z.number() }, async function* () {
    yield 'text'
  }),
  // @ts-expect-error callers get what the schema returns
  rpc({ output }, () => ({ at: 'now' })) satisfies RpcFunction<unknown, { at: string }>,
]

test('[FN-24] the types of results accept and refuse what the schema does', () => {
  expect([...valid, ...refused].every(({ kind }) => kind === 'rpc')).toBe(true)
})
