/** Forged and damaged archives: each is refused with a reason, and nothing is left behind. */
import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { packTar, type TarEntry } from 'modern-tar'
import { sealUnderPassphrase, unsealUnderPassphrase } from '../../../src/base/crypto/passphrase.ts'
import { formatManifest, parseManifest } from '../../../src/cli/backup-manifest.ts'
import { backUp, type Moment } from '../../../src/engines/backup/backup.ts'
import { restore } from '../../../src/engines/backup/restore.ts'
import { openConnection } from '../../../src/engines/sqlite/connection.ts'

const made: string[] = []
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-attack-'))
  made.push(folder)
  return folder
}

const head = formatManifest('2026-01-31T12:00:00.000Z', null)

/** The moment of a data folder without a running server. */
const offline: Moment = async (pin) => {
  pin()
  return { check: async () => {}, release: async () => {} }
}

type Entries = readonly (readonly [name: string, text: string, more?: Partial<TarEntry['header']>])[]

const file = (name: string, text: string, more: object = {}): TarEntry => ({
  header: { name, size: Buffer.byteLength(text), type: 'file', ...more },
  body: text,
})

/** An archive of these entries with correct checksums. */
async function pack(entries: Entries, { sums = true, after = [] as Entries } = {}): Promise<Uint8Array> {
  const lines = entries.map(([name, text]) => `${createHash('sha256').update(text).digest('hex')}  ${name}\n`)
  return packTar([
    ...entries.map(([name, text, more]) => file(name, text, more)),
    ...(sums ? [file('SHA256SUMS', lines.join(''))] : []),
    ...after.map(([name, text]) => file(name, text)),
  ])
}

/** Restores an archive; returns the error, and asserts that nothing was restored. */
async function refusalOf(bytes: Uint8Array): Promise<string> {
  const folder = makeFolder()
  const archive = join(folder, 'archive')
  writeFileSync(archive, bytes)
  const plan = { archive, folder: join(folder, 'in', 'data'), onHead: parseManifest, moreFiles: () => new Map() }
  const reason = await restore(plan).then(
    () => 'restored',
    (error: Error) => `${error.name}: ${error.message}`,
  )
  const left = readdirSync(folder, { recursive: true }).map(String)
  if (reason !== 'restored') expect(left.filter((name) => name !== 'archive' && name !== 'in')).toEqual([])
  return reason
}

const good: Entries = [
  ['backup.json', head],
  ['data/databases/shared.sqlite', 'x'.repeat(3000)],
  ['data/blobs/ab/one-ab', 'bytes'],
]

test('[BACKUP-8] the archive that the others are derived from is valid', async () => {
  expect(await refusalOf(await pack(good))).toBe('restored')
})

test('[BACKUP-10] an archive with secrets, keys or lock files among its files is refused', async () => {
  for (const name of ['secret', 'service-key', 'address', 'lock.sqlite', '.hidden', 'databases/.known.json'])
    expect(await refusalOf(await pack([...good, [`data/${name}`, 'x'.repeat(44)]]))).toStartWith('BackupError: ')
})

test('[BACKUP-8] a path that is not a file is refused before anything is written', async () => {
  const folder = makeFolder()
  const plan = { archive: folder, folder: join(folder, 'data'), onHead: parseManifest, moreFiles: () => new Map() }
  expect(await restore(plan).catch((error: Error) => error.message)).toBe(`${folder} is not a file`)
  expect(readdirSync(folder)).toEqual([])
})

test('[BACKUP-7] a restore into a symbolic link is refused', async () => {
  const folder = makeFolder()
  const archive = join(folder, 'archive')
  writeFileSync(archive, await pack(good))
  mkdirSync(join(folder, 'empty'))
  for (const leadsTo of ['empty', 'nowhere']) {
    const link = join(folder, `to-${leadsTo}`)
    symlinkSync(join(folder, leadsTo), link)
    const plan = { archive, folder: link, onHead: parseManifest, moreFiles: () => new Map() }
    expect(await restore(plan).catch((error: Error) => error.message)).toMatch(/is a link/)
  }
  expect(readdirSync(folder).sort()).toEqual(['archive', 'empty', 'to-empty', 'to-nowhere'])
  expect(readdirSync(join(folder, 'empty'))).toEqual([])
})

describe('forged archives', () => {
  const strange: readonly (readonly [what: string, path: string])[] = [
    ['a way up', 'data/../../outside'],
    ['a way up at the end', 'data/blobs/..'],
    ['here', 'data/./x'],
    ['an absolute path', '/tmp/outside'],
    ['an absolute path inside', 'data//etc/passwd'],
    ['a path of another system', 'data/..\\..\\outside'],
    ['a drive', 'C:\\outside'],
    ['something beside the data', 'outside'],
    ['a name that only begins alike', 'database/x'],
    ['nothing', 'data/'],
    ['a line break, which would make two lines of checksums', 'data/a\nb'],
    ['a name too long', `data/${'x'.repeat(256)}`],
    ['a path too long', `data/${'x/'.repeat(600)}x`],
  ]
  for (const [what, path] of strange)
    test(`[BACKUP-8] an entry whose path is ${what} is refused`, async () => {
      expect(await refusalOf(await pack([...good, [path, 'evil']]))).toStartWith('BackupError: ')
    })

  for (const type of ['symlink', 'link', 'directory', 'character-device', 'block-device', 'fifo'] as const)
    test(`[BACKUP-8] an entry that is a ${type} is refused`, async () => {
      const header = { name: 'data/blobs/evil', size: 0, type, linkname: '/etc/passwd' }
      const bytes = await packTar([file('backup.json', head), { header }, file('data/blobs/evil/x', 'evil')])
      expect(await refusalOf(bytes)).toContain('which is not a file')
    })

  const others: readonly (readonly [what: string, bytes: () => Promise<Uint8Array>, reason: string])[] = [
    ['a duplicate file', () => pack([...good, ['data/blobs/ab/one-ab', 'other']]), 'twice'],
    ['a file below another file', () => pack([...good, ['data/blobs/ab/one-ab/x', 'other']]), ''],
    ['no checksums', () => pack(good, { sums: false }), 'its checksums are missing'],
    ['entries after the checksums', () => pack(good, { after: [['data/more', 'x']] }), 'continues after its checksums'],
    ['no bytes', async () => new Uint8Array(), ''],
    ['random bytes', async () => crypto.getRandomValues(new Uint8Array(20_000)), ''],
    ['zeros', async () => new Uint8Array(20_480), 'its checksums are missing'],
    ['no manifest as its first entry', () => pack(good.slice(1)), 'not a backup of Plinth'],
    ['a manifest that is not JSON', () => pack([['backup.json', '{']]), 'not a backup of Plinth'],
    [
      'a manifest of another program',
      () => pack([['backup.json', '{"format":1}'], ...good.slice(1)]),
      'not a backup of Plinth',
    ],
    [
      'a manifest that is too large',
      () => pack([['backup.json', `${' '.repeat(70_000)}${head}`], ...good.slice(1)]),
      'not a backup of Plinth',
    ],
    [
      'a file without a checksum',
      async () => {
        const listed = await pack(good)
        const more = await packTar([file('data/databases/more', 'x')])
        // Inserted before the checksums, which are the last two blocks before the end.
        const at = listed.length - 1024 - 1024
        return Buffer.concat([listed.subarray(0, at), more.subarray(0, 1024), listed.subarray(at)])
      },
      'damaged',
    ],
  ]
  for (const [what, bytes, reason] of others)
    test(`[BACKUP-8] an archive with ${what} is refused`, async () => {
      const refusal = await refusalOf(await bytes())
      expect(refusal).not.toBe('restored')
      expect(refusal).toContain(reason)
    })

  test('[BACKUP-11] a backup of a newer version is refused', async () => {
    const newer = head.replace('"format": 1', '"format": 2')
    expect(newer).not.toBe(head)
    expect(await refusalOf(await pack([['backup.json', newer], ...good.slice(1)]))).toContain('newer')
  })
})

describe('damaged archives', () => {
  let intact: Uint8Array
  beforeAll(async () => {
    intact = await pack(good)
  })

  test('[BACKUP-8] an archive truncated at any position is refused', async () => {
    // Only padding follows the checksums.
    const end = intact.length - 1024 - 512
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: end }), async (length) => {
        expect(await refusalOf(intact.subarray(0, length))).toStartWith('BackupError: ')
      }),
      { numRuns: 100 },
    )
  })

  test('[BACKUP-8] an archive with any byte of a file changed is refused', async () => {
    const at = Buffer.from(intact).indexOf('x'.repeat(3000))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2999 }), fc.integer({ min: 1, max: 255 }), async (offset, flip) => {
        const bytes = Buffer.from(intact)
        bytes[at + offset] = (bytes[at + offset] as number) ^ flip
        expect(await refusalOf(bytes)).toContain('damaged')
      }),
      { numRuns: 100 },
    )
  })

  test('[BACKUP-8] an archive with any byte changed is refused or restores the same data', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: intact.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, flip) => {
          const bytes = Buffer.from(intact)
          bytes[at] = (bytes[at] as number) ^ flip
          const folder = makeFolder()
          writeFileSync(join(folder, 'archive'), bytes)
          const data = join(folder, 'data')
          const done = await restore({
            archive: join(folder, 'archive'),
            folder: data,
            onHead: parseManifest,
            moreFiles: () => new Map(),
          }).then(
            () => true,
            (error) => {
              expect(error.name).toBe('BackupError')
              return false
            },
          )
          expect(existsSync(data)).toBe(done)
          if (!done) return
          for (const [name, text] of good.slice(1)) expect(readFileSync(join(folder, name), 'utf8')).toBe(text)
        },
      ),
      { numRuns: 200 },
    )
  })
})

test('[BACKUP-6] sha256sum accepts the checksums of a backup', async () => {
  const folder = makeFolder()
  const data = join(folder, 'data')
  mkdirSync(join(data, 'databases'), { recursive: true })
  const connection = openConnection(join(data, 'databases', 'a.sqlite'))
  connection.exec('CREATE TABLE t (x)')
  writeFileSync(join(data, 'secret'), 'never in there')
  mkdirSync(join(data, 'blobs', 'xx'), { recursive: true })
  writeFileSync(join(data, 'blobs', 'xx', 'looks-like.sqlite'), 'a blob may be called anything')
  const target = join(folder, 'b.tar')
  const report = await backUp({ folder: data, target, head, moment: offline })
  connection.close()
  expect(report).toMatchObject({ databases: 1, files: 1 })
  const out = join(folder, 'out')
  mkdirSync(out)
  for (const command of [
    ['tar', 'xf', target, '-C', out],
    ['sha256sum', '--check', '--strict', '--quiet', 'SHA256SUMS'],
  ]) {
    const child = Bun.spawn(command, { cwd: out, stdout: 'pipe', stderr: 'pipe' })
    expect(await new Response(child.stderr).text()).toBe('')
    expect(await child.exited).toBe(0)
  }
  expect(readdirSync(out).sort()).toEqual(['SHA256SUMS', 'backup.json', 'data'])
  expect(readFileSync(target).includes('never in there')).toBe(false)
})

test('[BACKUP-13] a linked top folder of the data folder is followed, and no other link is', async () => {
  const folder = makeFolder()
  const data = join(folder, 'data')
  mkdirSync(data)
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(join(elsewhere, 'xx'), { recursive: true })
  writeFileSync(join(elsewhere, 'xx', 'one-xx'), 'bytes')
  symlinkSync(elsewhere, join(data, 'blobs'))
  symlinkSync('/etc/passwd', join(data, 'secret'))
  const backUpTo = (name: string) => backUp({ folder: data, target: join(folder, name), head, moment: offline })
  expect(await backUpTo('a.tar')).toEqual({ databases: 0, files: 1, bytes: 5 })
  symlinkSync('/etc/passwd', join(elsewhere, 'xx', 'two-xx'))
  await expect(backUpTo('b.tar')).rejects.toThrow('is a link')
  expect(readdirSync(folder).sort()).toEqual(['a.tar', 'data', 'elsewhere'])
})

test('[BACKUP-10] a sealed text opens only with its passphrase and only if unchanged', () => {
  const sealed = sealUnderPassphrase('the secret', 'nine hundred paper boats')
  expect(sealUnderPassphrase('the secret', 'nine hundred paper boats')).not.toBe(sealed)
  expect(unsealUnderPassphrase(sealed, 'nine hundred paper boats')).toBe('the secret')
  const changed = `${sealed.slice(0, 30)}${sealed[30] === 'A' ? 'B' : 'A'}${sealed.slice(31)}`
  for (const other of [changed, sealed.slice(0, -4), '', '1.', sealed.slice(2)])
    expect(unsealUnderPassphrase(other, 'nine hundred paper boats')).toBeNull()
  expect(unsealUnderPassphrase(sealed, 'nine hundred paper boots')).toBeNull()
})
