import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ChunkReader } from './chunk-reader.ts'

async function* bodyOf(pieces: readonly string[], failure?: Error): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece)
  if (failure) throw failure
}

async function readAll(reader: ChunkReader, bytesMax: number): Promise<readonly string[]> {
  const chunks: string[] = []
  while (await reader.hasMore()) {
    const pieces: Uint8Array[] = []
    for await (const piece of reader.next(bytesMax)) pieces.push(piece)
    chunks.push(Buffer.concat(pieces).toString())
  }
  return chunks
}

test('any pieces become chunks of the requested size, of which only the last is smaller', async () => {
  const pieces = fc.array(fc.string({ unit: 'grapheme-ascii', maxLength: 12 }), { maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(pieces, fc.integer({ min: 1, max: 15 }), async (body, bytesMax) => {
      const reader = new ChunkReader(bodyOf(body))
      const text = body.join('')
      const expected = Array.from({ length: Math.ceil(text.length / bytesMax) }, (_, at) =>
        text.slice(at * bytesMax, (at + 1) * bytesMax),
      )
      expect(await readAll(reader, bytesMax)).toEqual(expected)
      expect(reader.failure).toBeNull()
    }),
  )
})

test('a failure ends the body after the bytes before it', async () => {
  const failure = new Error('broken')
  const reader = new ChunkReader(bodyOf(['abc', 'de'], failure))
  expect(await readAll(reader, 2)).toEqual(['ab', 'cd', 'e'])
  expect(reader.failure).toBe(failure)
})

test('a closed reader reads no more of the body', async () => {
  const closed = Promise.withResolvers<void>()
  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield Buffer.from('abc')
    } finally {
      closed.resolve()
    }
  }
  const reader = new ChunkReader(body())
  expect(await reader.hasMore()).toBe(true)
  reader.close()
  await closed.promise
  expect(await readAll(reader, 3)).toEqual(['abc'])
})
