import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mappedReadsMin } from '../../../limits/sqlite.ts'
import { openKnownDatabases } from '../../disk/known-databases.ts'
import { sql } from '../../sql/sql-text.ts'
import { openConnection } from '../connection.ts'
import { createFileMapping, type FileMapping, mappedFile } from './file-mapping.ts'

/** A mapping on a connection that notes the bytes that are mapped, or fails. */
function recorded({ isLarge = true, isReadable = true, fails = false } = {}) {
  const sizes: number[] = []
  const exec = (text: string): void => {
    if (fails) throw new Error('injected')
    sizes.push(Number(/= (\d+)$/.exec(text)?.[1]))
  }
  const file = { isLarge: () => isLarge, canRead: async () => isReadable, onMap() {} }
  return { sizes, mapping: createFileMapping({ exec }, file) }
}

/** Reads enough to map a file, once it is known whether it can be read. */
async function readMany(mapping: FileMapping): Promise<void> {
  mapping.beforeReads(mappedReadsMin)
  await new Promise((resolve) => setImmediate(resolve))
  mapping.beforeReads(mappedReadsMin)
}

test('a file is mapped after many reads without a commit, and no longer from the next commit on', async () => {
  const { sizes, mapping } = recorded()
  mapping.beforeReads(mappedReadsMin - 1)
  mapping.changed()
  expect(sizes).toEqual([])
  await readMany(mapping)
  expect(sizes).toEqual([expect.any(Number)])
  mapping.changed()
  mapping.changed()
  expect(sizes.slice(1)).toEqual([0])
  mapping.beforeReads(mappedReadsMin - 1)
  expect(sizes).toHaveLength(2)
  mapping.beforeReads(1)
  expect(sizes[2]).toBeGreaterThan(0)
})

test('[FAULT-10] a file that cannot be read completely is never mapped, nor a small one, nor one that is closed', async () => {
  const closed = recorded()
  closed.mapping.close()
  for (const { mapping, sizes } of [recorded({ isReadable: false }), recorded({ isLarge: false }), closed]) {
    for (let round = 0; round < 3; round++) await readMany(mapping)
    expect(sizes).toEqual([])
  }
})

test('[FAULT-10] a file that was mapped when a process ended is read to its end before it is mapped', async () => {
  const canRead = (path: string, isSuspect = true): Promise<boolean> =>
    mappedFile(path, { isSuspect: () => isSuspect, onMap() {} }).canRead(1e9, () => false)
  expect(await canRead(import.meta.path)).toBe(true)
  // A folder can be opened, but reading it fails, as a damaged part of a disk does.
  expect(await canRead(tmpdir())).toBe(false)
  expect(await canRead(tmpdir(), false)).toBe(true)
  expect(await canRead(join(tmpdir(), crypto.randomUUID()))).toBe(false)
})

test('[FAULT-10] a folder remembers which files were mapped until they are closed or mapped again', () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-known-'))
  const open = () => openKnownDatabases(folder, { label: 'databases', acceptsLoss: false })
  try {
    const first = open()
    expect(first.isSuspect('main')).toBe(false)
    first.mapping('main')
    // The process has ended, and so have two that did not come to map the file; the second was shut down.
    open()
    open().markClosed()
    const later = open()
    expect([later.isSuspect('main'), later.isSuspect('other')]).toEqual([true, false])
    later.mapping('main')
    expect(later.isSuspect('main')).toBe(false)
    expect(open().isSuspect('main')).toBe(true)
    later.markClosed()
    expect(open().isSuspect('main')).toBe(false)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a file that cannot be mapped is read without', async () => {
  const { mapping } = recorded({ fails: true })
  await readMany(mapping)
  mapping.changed()
})

test.skipIf(process.platform !== 'linux')('a connection maps its file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-mapped-'))
  const path = join(folder, 'mapped.sqlite')
  const isMapped = (): boolean => readFileSync('/proc/self/maps', 'utf8').includes(`${path}\n`)
  const writing = openConnection(path)
  const reading = openConnection(path, { readonly: true })
  try {
    writing.exec('CREATE TABLE t (n INTEGER)')
    writing.exec('INSERT INTO t (n) VALUES (1)')
    writing.all(sql`PRAGMA wal_checkpoint(TRUNCATE)`)
    const mapping = createFileMapping(reading, { isLarge: () => true, canRead: async () => true, onMap() {} })
    await readMany(mapping)
    expect([reading.all(sql`SELECT n FROM t`), isMapped()]).toEqual([[{ n: 1 }], true])
    writing.exec('INSERT INTO t (n) VALUES (2)')
    mapping.changed()
    expect([reading.all(sql`SELECT n FROM t`), isMapped()]).toEqual([[{ n: 1 }, { n: 2 }], false])
  } finally {
    reading.close()
    writing.close()
    rmSync(folder, { recursive: true })
  }
})
