/** Blobs on disk: the port's contract, and behavior with a full disk, planted links and a power cut. */
import { describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bytesOf, describeBlobs, idsOf, inChunks, makeBytes, newId, sha256Of } from '../contract/blobs-contract.ts'
import type { Blobs } from './blobs.ts'
import { openFsBlobs } from './fs.ts'

const plenty = { bytesMax: 1024 ** 4 }
const always = Number.POSITIVE_INFINITY

const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'plinth-blobs-'))

/** Names of all files below the folder. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ name, parentPath }) => join(parentPath, name))

const unfinishedIn = (folder: string): string[] => readdirSync(join(folder, '.unfinished'))

async function withBlobs(run: (blobs: Blobs, folder: string) => Promise<void>, folder = makeFolder()): Promise<void> {
  try {
    await run(await openFsBlobs({ folder }), folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describeBlobs('a folder', async () => {
  const folder = makeFolder()
  return {
    blobs: await openFsBlobs({ folder }),
    list: async () => ({
      complete: filesIn(folder).filter((path) => !path.includes('.unfinished')),
      unfinished: unfinishedIn(folder),
    }),
    dispose: async () => rmSync(folder, { recursive: true }),
  }
})

describe('blobs in a folder', () => {
  test('are not accessible to other users of the machine', () =>
    withBlobs(async (blobs, folder) => {
      const id = newId()
      await blobs.write(id, inChunks(makeBytes(10)), plenty)
      const [path = ''] = filesIn(folder)
      expect(path).toEndWith(`/${id.slice(-2)}/${id}`)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
    }))

  test('are not written through an existing link', () =>
    withBlobs(async (blobs, folder) => {
      const [id, target] = [newId(), join(folder, 'target')]
      writeFileSync(target, 'precious')
      symlinkSync(target, join(folder, '.unfinished', id))
      await expect(blobs.write(id, inChunks(makeBytes(10)), plenty)).rejects.toMatchObject({ kind: 'unavailable' })
      expect(readFileSync(target, 'utf8')).toBe('precious')
      expect(await idsOf(blobs)).toEqual([])
    }))

  test('exclude links, folders and foreign files', () =>
    withBlobs(async (blobs, folder) => {
      const [link, inner] = [newId(), newId()]
      writeFileSync(join(folder, 'target'), 'precious')
      for (const id of [link, inner]) mkdirSync(join(folder, id.slice(-2)), { recursive: true })
      symlinkSync(join(folder, 'target'), join(folder, link.slice(-2), link))
      mkdirSync(join(folder, inner.slice(-2), inner))
      writeFileSync(join(folder, inner.slice(-2), 'read me.txt'), 'foreign')
      for (const id of [link, inner])
        await expect(blobs.read(id, { start: 0, end: 1 })).rejects.toMatchObject({ kind: 'unavailable' })
      expect(await idsOf(blobs)).toEqual([])
    }))

  test('are removed without following links', () =>
    withBlobs(async (blobs, folder) => {
      const id = newId()
      writeFileSync(join(folder, 'target'), 'precious')
      mkdirSync(join(folder, id.slice(-2)))
      symlinkSync(join(folder, 'target'), join(folder, id.slice(-2), id))
      await blobs.remove([id])
      expect(existsSync(join(folder, 'target'))).toBe(true)
      expect(existsSync(join(folder, id.slice(-2), id))).toBe(false)
    }))

  test('left unfinished by a crash are removed by age', () =>
    withBlobs(async (blobs, folder) => {
      writeFileSync(join(folder, '.unfinished', newId()), 'half of someth')
      expect(await idsOf(blobs)).toEqual([])
      expect(await blobs.removeUnfinished(Date.now() - 60_000)).toBe(0)
      expect(await blobs.removeUnfinished(always)).toBe(1)
      expect(unfinishedIn(folder)).toEqual([])
    }))

  test('cannot be stored while the folder is missing, and can once it is back', () =>
    withBlobs(async (blobs, folder) => {
      const id = newId()
      await blobs.write(id, inChunks(makeBytes(9)), plenty)
      // Moved, not removed: a new folder may get the inode of the old one.
      renameSync(folder, `${folder}-away`)
      expect(await blobs.findFault()).toBeString()
      await expect(blobs.write(newId(), inChunks(makeBytes(9)), plenty)).rejects.toMatchObject({ kind: 'unavailable' })
      await expect(idsOf(blobs)).rejects.toMatchObject({ kind: 'unavailable' })
      renameSync(`${folder}-away`, folder)
      expect(await blobs.findFault()).toBeNull()
      const next = newId()
      await blobs.write(next, inChunks(makeBytes(9)), plenty)
      expect((await idsOf(blobs)).toSorted()).toEqual([id, next].toSorted())
    }))
})

/** Only root can create a disk small enough to fill. */
function mountSmallDisk(): string | null {
  const folder = makeFolder()
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'plinth-test', folder]).exitCode === 0
  if (!mounted) rmSync(folder, { recursive: true })
  return mounted ? folder : null
}

const smallDisk = process.platform === 'linux' && process.getuid?.() === 0 ? mountSmallDisk() : null

test.if(smallDisk !== null)('a full disk refuses, loses nothing, and serves again once there is room', async () => {
  const folder = smallDisk as string
  try {
    const blobs = await openFsBlobs({ folder })
    const [first, second] = [newId(), newId()]
    const bytes = makeBytes(600_000)
    await blobs.write(first, inChunks(bytes), plenty)
    const refused = await blobs.write(second, inChunks(bytes), plenty).catch((error) => error)
    expect(refused).toMatchObject({ kind: 'unavailable', message: 'The disk is full' })
    expect(await idsOf(blobs)).toEqual([first])
    expect(unfinishedIn(folder)).toEqual([])
    expect(sha256Of(await bytesOf(await blobs.read(first, { start: 0, end: bytes.length })))).toBe(sha256Of(bytes))
    await blobs.remove([first])
    await blobs.write(second, inChunks(bytes), plenty)
    expect(await idsOf(blobs)).toEqual([second])
  } finally {
    Bun.spawnSync(['umount', folder])
    rmSync(folder, { recursive: true })
  }
})

/** Writes blobs whose bytes derive from their ids, and reports each, until it is killed. */
const writer = `
  import { openFsBlobs } from ${JSON.stringify(join(import.meta.dir, 'fs.ts'))}
  import { inChunks, makeBytes, newId } from ${JSON.stringify(join(import.meta.dir, '../contract/blobs-contract.ts'))}
  const blobs = await openFsBlobs({ folder: process.argv[1] })
  await Promise.all(Array.from({ length: 4 }, async () => {
    for (;;) {
      const id = newId()
      const bytes = makeBytes(300_000, Number.parseInt(id.slice(0, 8), 16))
      await blobs.write(id, inChunks(bytes, [10_000]), { bytesMax: 1e9 })
      console.log(id)
    }
  }))
`

test('a killed process leaves only complete blobs, every acknowledged one, and leftovers that are swept', () =>
  withBlobs(async (blobs, folder) => {
    const child = Bun.spawn([process.execPath, '-e', writer, folder], { stdout: 'pipe', stderr: 'inherit' })
    let confirmed = ''
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      confirmed += text
      if (confirmed.split('\n').length > 20) child.kill('SIGKILL')
    }
    const ids = await idsOf(blobs)
    for (const id of ids) {
      const read = await bytesOf(await blobs.read(id, { start: 0, end: 300_000 }))
      expect(sha256Of(read)).toBe(sha256Of(makeBytes(300_000, Number.parseInt(id.slice(0, 8), 16))))
    }
    const isComplete = (id: string): boolean => ids.includes(id)
    expect(confirmed.split('\n').slice(0, -1).every(isComplete)).toBe(true)
    await blobs.removeUnfinished(always)
    expect(filesIn(folder)).toHaveLength(ids.length)
  }))
