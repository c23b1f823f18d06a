import { describe, expect, test } from 'bun:test'
import sharp from 'sharp'
import type { ImageVariant } from '../../../src/engines/images/images.ts'
import { openImageProcesses } from '../../../src/engines/images/process.ts'
import { imageFormatPixelsMax } from '../../../src/limits/storage.ts'
import { canListChildren, childrenOf, isRunning } from '../../harness/processes/children.ts'

const never = new AbortController().signal
const as = (changes: Partial<ImageVariant> = {}): ImageVariant => ({
  width: null,
  height: null,
  fit: 'cover',
  format: null,
  ...changes,
})
const red = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: 'red' } })
    .png()
    .toBuffer()

async function* inPieces(bytes: Uint8Array, size = 100): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const imageProcesses = (): number[] => childrenOf(process.pid, 'images/child')
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}

test('[STORE-IMG-8] too many pixels, a source that is not an image and a source that fails are rejected', async () => {
  const images = openImageProcesses({ timeoutMs: 10_000 })
  const source = await red(100, 80)
  const small = await images.render(inPieces(source), as({ width: 50, format: 'avif' }), never)
  expect((await sharp(small).metadata()).width).toBe(50)
  for (const [format, pixelsMax] of Object.entries(imageFormatPixelsMax)) {
    const variant = as({ width: 8000, height: Math.ceil(pixelsMax / 8000) + 1, format: format as 'avif' })
    const refusal = `the maximum for ${format} is ${pixelsMax}`
    await expect(images.render(inPieces(source), variant, never)).rejects.toThrow(refusal)
  }
  await expect(images.render(inPieces(source.subarray(0, 60)), as(), never)).rejects.toMatchObject({
    kind: 'refused',
  })
  const broken = (async function* () {
    yield source.subarray(0, 10)
    throw new Error('the store is unavailable')
  })()
  await expect(images.render(broken, as({ width: 5 }), never)).rejects.toThrow('the store is unavailable')
  expect(await images.render(inPieces(source), as({ width: 5 }), never)).toBeTruthy()
  await images.close()
  await expect(images.render(inPieces(source), as(), never)).rejects.toMatchObject({ kind: 'unavailable' })
})

describe.skipIf(!canListChildren)('the image process', () => {
  test('[STORE-IMG-5] is killed at the deadline and replaced', async () => {
    const images = openImageProcesses({ timeoutMs: 2000 })
    const source = await red(50, 50)
    await images.render(inPieces(source), as({ width: 10 }), never)
    const first = imageProcesses()
    for (const pid of first) process.kill(pid, 'SIGSTOP')
    await expect(images.render(inPieces(source), as({ width: 11 }), never)).rejects.toMatchObject({ kind: 'slow' })
    await until(() => !first.some(isRunning))
    expect(await images.render(inPieces(source), as({ width: 11 }), never)).toBeTruthy()
    expect(imageProcesses().filter((pid) => first.includes(pid))).toEqual([])
    await images.close()
    expect(imageProcesses()).toEqual([])
  })

  test('[STORE-IMG-6] is killed when its work is aborted', async () => {
    const images = openImageProcesses({ timeoutMs: 10_000 })
    const source = await red(50, 50)
    const controller = new AbortController()
    const work = images.render(inPieces(source), as({ width: 10 }), controller.signal)
    controller.abort(new Error('gone'))
    await expect(work).rejects.toThrow('gone')
    await until(() => imageProcesses().length === 0)
    expect(await images.render(inPieces(source), as({ width: 10 }), never)).toBeTruthy()
    await images.close()
  })
})
