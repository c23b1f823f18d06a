/** Contract tests of the `Blobs` port. Each adapter's test file runs this suite on a real store. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { s3PartBytes, sniffBytes } from '../../limits/storage.ts'
import { BlobMissingError, BlobSizeError, type BlobSource, type Blobs, BlobTooLargeError } from '../blobs/blobs.ts'

/** A store that nothing has used. */
export interface BlobsUnderTest {
  readonly blobs: Blobs
  /** Everything in the store: complete blobs, and leftovers of unfinished writes. */
  list(): Promise<{ complete: string[]; unfinished: string[] }>
  dispose(): Promise<void>
}

export const newId = (): string => crypto.randomUUID()

/** The same bytes for the same seed, unlike their neighbors at any distance that matters. */
export function makeBytes(size: number, seed = 1): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(size / 4))
  for (let at = 0, state = seed; at < words.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    words[at] = state
  }
  return new Uint8Array(words.buffer, 0, size)
}

/** A body that comes in chunks of these sizes, the last of them over and over. */
export async function* inChunks(bytes: Uint8Array, sizes: readonly number[] = [64 * 1024]): AsyncGenerator<Uint8Array> {
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[Math.min(n, sizes.length - 1)] as number
    // A copy: what has been given belongs to the store.
    yield bytes.slice(at, at + size)
    at += size
  }
}

export const sha256Of = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

export async function bytesOf(source: BlobSource): Promise<Uint8Array> {
  if (source.kind === 'file') return Bun.file(source.path).slice(source.start, source.end).bytes()
  return new Response(source.stream).bytes()
}

export async function idsOf(blobs: Blobs, beforeMs = Number.POSITIVE_INFINITY): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of blobs.listOlderThan(beforeMs)) ids.push(id)
  return ids.sort()
}

const plenty = { bytesMax: 1024 ** 4 }

type WithBlobs = (title: string, run: (store: BlobsUnderTest) => Promise<void>) => void

export function describeBlobs(name: string, open: () => Promise<BlobsUnderTest>): void {
  const withBlobs: WithBlobs = (title, run) =>
    test(title, async () => {
      const store = await open()
      try {
        await run(store)
      } finally {
        await store.blobs.close()
        await store.dispose()
      }
    })
  describe(`writing to ${name}`, () => describeWrites(withBlobs))
  describe(`refusals of ${name}`, () => describeRefusals(withBlobs))
  describe(`reading from ${name}`, () => describeReads(withBlobs))
  describe(`removing from ${name}`, () => describeRemovals(withBlobs))
}

function describeWrites(withBlobs: WithBlobs): void {
  const sizes = [0, 1, sniffBytes, sniffBytes + 1, s3PartBytes - 1, s3PartBytes, s3PartBytes + 1, 3 * s3PartBytes + 7]
  for (const size of sizes)
    withBlobs(`${size} bytes come back as they were`, async ({ blobs, list }) => {
      const [id, bytes] = [newId(), makeBytes(size)]
      const written = await blobs.write(id, inChunks(bytes), { ...plenty, size })
      expect(written).toMatchObject({ size, sha256: sha256Of(bytes) })
      expect(sha256Of(written.head)).toBe(sha256Of(bytes.subarray(0, sniffBytes)))
      expect(sha256Of(await bytesOf(await blobs.read(id, { start: 0, end: size })))).toBe(sha256Of(bytes))
      expect(await list()).toMatchObject({ complete: [expect.stringContaining(id)], unfinished: [] })
    })

  withBlobs('in whatever pieces a body comes, it is the same body', async ({ blobs }) => {
    const bytes = makeBytes(s3PartBytes + 300_000)
    const pieces = fc.array(fc.oneof(fc.nat(5000), fc.nat(2 * s3PartBytes)), { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(pieces, async (sizes) => {
        const id = newId()
        const written = await blobs.write(id, inChunks(bytes, [...sizes, 700_000]), plenty)
        expect(written.sha256).toBe(sha256Of(bytes))
        expect(written.head).toHaveLength(sniffBytes)
        const read = await bytesOf(await blobs.read(id, { start: 0, end: bytes.length }))
        expect(sha256Of(read)).toBe(written.sha256)
      }),
      { numRuns: 10 },
    )
  })

  withBlobs('many at once do not mix', async ({ blobs, list }) => {
    const all = Array.from({ length: 30 }, (_, n) => ({ id: newId(), bytes: makeBytes(200_000 + n, n + 1) }))
    await Promise.all(all.map(({ id, bytes }, n) => blobs.write(id, inChunks(bytes, [1000 + n]), plenty)))
    for (const { id, bytes } of all) {
      const read = await bytesOf(await blobs.read(id, { start: 0, end: bytes.length }))
      expect(sha256Of(read)).toBe(sha256Of(bytes))
    }
    expect(await idsOf(blobs)).toEqual(all.map(({ id }) => id).sort())
    expect((await list()).complete).toHaveLength(30)
  })
}

function describeRefusals(withBlobs: WithBlobs): void {
  const bytes = makeBytes(2 * s3PartBytes)
  const expectRefused = async (store: BlobsUnderTest, writing: Promise<unknown>, error: Error): Promise<void> => {
    expect(await writing.catch((reason) => reason)).toEqual(error)
    expect(await store.list()).toEqual({ complete: [], unfinished: [] })
    expect(await idsOf(store.blobs)).toEqual([])
  }

  for (const bytesMax of [0, 100_000, bytes.length - 1])
    withBlobs(`one byte more than ${bytesMax} leaves nothing`, async (store) => {
      const writing = store.blobs.write(newId(), inChunks(bytes.subarray(0, bytesMax + 1)), { bytesMax })
      await expectRefused(store, writing, new BlobTooLargeError(bytesMax))
    })

  withBlobs('as many bytes as allowed are fine', async ({ blobs }) => {
    const written = await blobs.write(newId(), inChunks(bytes), { bytesMax: bytes.length })
    expect(written.size).toBe(bytes.length)
  })

  withBlobs('a body without end is read no further than it may go', async (store) => {
    let given = 0
    let isEnded = false
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          given += 1000
          yield new Uint8Array(1000)
        }
      } finally {
        isEnded = true
      }
    }
    const writing = store.blobs.write(newId(), endless(), { bytesMax: 500_000 })
    await expectRefused(store, writing, new BlobTooLargeError(500_000))
    expect({ given, isEnded }).toEqual({ given: 501_000, isEnded: true })
  })

  withBlobs('a body that is declared too large is not begun', async (store) => {
    let isBegun = false
    async function* body(): AsyncGenerator<Uint8Array> {
      isBegun = true
      yield bytes
    }
    const options = { bytesMax: 1000, size: 1001 }
    const writing = (async () => store.blobs.write(newId(), body(), options))()
    await expectRefused(store, writing, new BlobTooLargeError(1000))
    expect(isBegun).toBe(false)
  })

  withBlobs('a body that is shorter than declared leaves nothing', async (store) => {
    const writing = store.blobs.write(newId(), inChunks(bytes), { ...plenty, size: bytes.length + 1 })
    await expectRefused(store, writing, new BlobSizeError(bytes.length + 1, bytes.length))
  })

  withBlobs('a body that is longer than declared leaves nothing', async (store) => {
    const writing = store.blobs.write(newId(), inChunks(bytes, [5000]), { ...plenty, size: 9999 })
    await expectRefused(store, writing, new BlobSizeError(9999, 10_000))
  })

  for (const size of [0, 10_000, bytes.length])
    withBlobs(`a body that breaks off after ${size} bytes leaves nothing`, async (store) => {
      async function* body(): AsyncGenerator<Uint8Array> {
        yield* inChunks(bytes.subarray(0, size))
        throw new Error('the sender is gone')
      }
      await expectRefused(store, store.blobs.write(newId(), body(), plenty), new Error('the sender is gone'))
    })

  const badIds = ['', '.', '..', '../x', 'a/b', 'a\\b', 'a\0b', 'é', 'a b', '.unfinished', 'x'.repeat(65)]
  for (const id of badIds)
    withBlobs(`no blob can be named ${JSON.stringify(id)}`, async (store) => {
      const tries = [
        async () => store.blobs.write(id, inChunks(bytes), plenty),
        async () => store.blobs.read(id, { start: 0, end: 1 }),
        async () => store.blobs.remove([id]),
      ]
      for (const attempt of tries) await expect(attempt()).rejects.toThrow(RangeError)
      expect(await store.list()).toEqual({ complete: [], unfinished: [] })
    })
}

function describeReads(withBlobs: WithBlobs): void {
  withBlobs('any range of a blob', async ({ blobs }) => {
    const [id, bytes] = [newId(), makeBytes(s3PartBytes + 1_000_003)]
    await blobs.write(id, inChunks(bytes), plenty)
    const bounds = fc.tuple(fc.nat(bytes.length), fc.nat(bytes.length))
    await fc.assert(
      fc.asyncProperty(bounds, async ([a, b]) => {
        const range = { start: Math.min(a, b), end: Math.max(a, b) }
        const read = await bytesOf(await blobs.read(id, range))
        expect(sha256Of(read)).toBe(sha256Of(bytes.subarray(range.start, range.end)))
      }),
      { numRuns: 20, examples: [[[0, 1]], [[0, 0]], [[bytes.length - 1, bytes.length]], [[7, 7]]] },
    )
  })

  withBlobs('every operation on a missing blob', async ({ blobs }) => {
    for (const range of [
      { start: 0, end: 1 },
      { start: 0, end: 0 },
    ])
      await expect(blobs.read(newId(), range)).rejects.toThrow(BlobMissingError)
  })

  withBlobs('a blob that is shorter than it should be is no blob to send', async ({ blobs }) => {
    const id = newId()
    await blobs.write(id, inChunks(makeBytes(1000)), plenty)
    for (const range of [
      { start: 0, end: 1001 },
      { start: 1000, end: 1001 },
      { start: 5000, end: 6000 },
    ])
      await expect(blobs.read(id, range)).rejects.toMatchObject({ name: 'EngineError', kind: 'unavailable' })
  })

  withBlobs('many readers of one blob, some of whom leave early', async ({ blobs }) => {
    const [id, bytes] = [newId(), makeBytes(4_000_000)]
    await blobs.write(id, inChunks(bytes), plenty)
    const read = async (n: number): Promise<void> => {
      const source = await blobs.read(id, { start: n, end: bytes.length })
      if (n % 3 === 0 && source.kind === 'stream') return source.stream.cancel()
      expect(sha256Of(await bytesOf(source))).toBe(sha256Of(bytes.subarray(n)))
    }
    await Promise.all(Array.from({ length: 30 }, (_, n) => read(n)))
  })
}

function describeRemovals(withBlobs: WithBlobs): void {
  const fill = async (blobs: Blobs, count: number): Promise<string[]> => {
    const ids = Array.from({ length: count }, newId)
    await Promise.all(ids.map((id) => blobs.write(id, inChunks(makeBytes(10)), plenty)))
    return ids.sort()
  }

  withBlobs('what is removed is gone, and nothing else', async ({ blobs, list }) => {
    const [kept = '', ...removed] = await fill(blobs, 20)
    await blobs.remove([...removed, newId()])
    expect(await idsOf(blobs)).toEqual([kept])
    for (const id of removed) await expect(blobs.read(id, { start: 0, end: 1 })).rejects.toThrow(BlobMissingError)
    await blobs.remove(removed)
    await blobs.remove([])
    expect((await list()).complete).toHaveLength(1)
  })

  withBlobs('blobs are listed with their size and age', async ({ blobs }) => {
    expect(await idsOf(blobs)).toEqual([])
    // Stores keep seconds.
    const beforeMs = Date.now() - 2000
    const ids = await fill(blobs, 3)
    expect(await idsOf(blobs, beforeMs)).toEqual([])
    expect(await idsOf(blobs, Date.now() + 60_000)).toEqual(ids)
    for await (const { size, modifiedMs } of blobs.listOlderThan(Number.POSITIVE_INFINITY)) {
      expect(size).toBe(10)
      expect(modifiedMs).toBeGreaterThan(beforeMs)
      expect(modifiedMs).toBeLessThan(Date.now() + 2000)
    }
  })

  withBlobs('a write under way is not listed, and is unfinished', async ({ blobs, list }) => {
    const [id, bytes] = [newId(), makeBytes(3 * s3PartBytes)]
    const ids: string[][] = []
    async function* body(): AsyncGenerator<Uint8Array> {
      yield* inChunks(bytes)
      ids.push(await idsOf(blobs))
      expect(await blobs.removeUnfinished(Date.now() - 60_000)).toBe(0)
    }
    await blobs.write(id, body(), plenty)
    expect(ids).toEqual([[]])
    expect(sha256Of(await bytesOf(await blobs.read(id, { start: 0, end: bytes.length })))).toBe(sha256Of(bytes))
    expect((await list()).unfinished).toEqual([])
    expect(await blobs.removeUnfinished(Number.POSITIVE_INFINITY)).toBe(0)
  })

  withBlobs('it is healthy', async ({ blobs }) => expect(await blobs.findFault()).toBeNull())
}
