import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Blobs, ByteRange } from '../../engines/blobs/blobs.ts'
import { readFileBytes } from '../../limits/storage.ts'
import { sendContent } from './download.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-download-'))
afterAll(() => rmSync(folder, { recursive: true }))

const blobs = {
  read: (id: string, range: ByteRange) => Promise.resolve({ kind: 'file', path: join(folder, id), ...range }),
} as unknown as Blobs

const send = (id: string, size: number, headers: HeadersInit = {}) =>
  sendContent(
    blobs,
    { key: 'k', size, contentType: 'text/plain', etag: 'e', createdAt: '2026-01-01T00:00:00Z', blobs: [[id, size]] },
    { method: 'GET', headers: new Headers(headers) },
  )

function write(bytes: number): Buffer {
  const content = Buffer.from(Array.from({ length: bytes }, (_, at) => at % 251))
  writeFileSync(join(folder, String(bytes)), content)
  return content
}

test('a short file is sent from memory, a longer one by the runtime', async () => {
  const short = write(readFileBytes)
  expect((await send(String(readFileBytes), readFileBytes)).source).toEqual(new Uint8Array(short))
  write(readFileBytes + 1)
  expect((await send(String(readFileBytes + 1), readFileBytes + 1)).source).toMatchObject({ kind: 'file' })
})

test('a short range is read from its offset', async () => {
  const long = write(100_000)
  const { status, source } = await send('100000', 100_000, { Range: 'bytes=70000-70099' })
  expect(status).toBe(206)
  expect(source).toEqual(new Uint8Array(long.subarray(70_000, 70_100)))
})

test('a range that must be ignored is not applied to a short file', async () => {
  const short = write(100)
  const { status, source } = await send('100', 100, { Range: 'bytes=0-9', 'If-Range': '"other"' })
  expect(status).toBe(200)
  expect(source).toEqual(new Uint8Array(short))
})

test('a short file that cannot be opened is reported', async () => {
  await expect(send('missing', 10)).rejects.toMatchObject({ kind: 'unavailable' })
})
