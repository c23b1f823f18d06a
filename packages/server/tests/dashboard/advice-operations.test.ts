/** Advice on the operation of a server, by a clock and a disk that the tests move. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../src/base/clock.ts'
import { headName, openArchiveWriter } from '../../src/engines/backup/archive.ts'
import {
  adviceBackupAgeMs,
  adviceCachedMs,
  adviceClockSkewMs,
  adviceDiskBytesMin,
  adviceIndexUnusedMs,
  adviceVerifiedAgeMs,
} from '../../src/limits/dashboard.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { type Engine, engines, sharedEngine } from '../harness/engines.ts'
import { openSharedStorage } from '../harness/nodes.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'

interface Advice {
  readonly id: string
  readonly severity: string
  readonly title: string
  readonly where: string
  readonly why: string
  readonly code: string | null
}

const embedded = engines[0] as Engine
const closing = closeAfterEach()
const dayMs = 24 * 60 * 60 * 1000

/** What begins with an id, computed again: advice is kept for a minute. */
async function advised(server: TestServer, clock: ManualClock, start: string): Promise<readonly Advice[]> {
  clock.advance(adviceCachedMs)
  const { status, body } = await server.service.get('/api/advice')
  expect(status).toBe(200)
  return body.items.filter(({ id }: Advice) => id.startsWith(start))
}

describe('backups', () => {
  const clock = manualClock(Date.now())
  let folder = ''
  let server: TestServer
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'plinth-advice-'))
    closing(folder, async (path) => rmSync(path, { recursive: true }))
    const settings = { backupFolder: folder }
    server = closing(await startServer({ config: {}, mode: 'release', clock, settings }, embedded), ({ close }) =>
      close(),
    )
  })
  let archives = 0
  /** A backup that was made now. */
  async function backUp(): Promise<string> {
    const name = `plinth-2026-01-${String(++archives).padStart(2, '0')}.tar`
    const writer = await openArchiveWriter(join(folder, name), join(folder, 'sums'))
    const createdAt = new Date(clock.now()).toISOString()
    await writer.addText(headName, JSON.stringify({ version: '1.0.0', createdAt, secrets: null }))
    await writer.finish()
    await writer.close()
    return name
  }
  function verify(name: string, problems: readonly string[] = []): void {
    const path = join(folder, `${name}.verified`)
    writeFileSync(path, JSON.stringify({ verifiedAtMs: clock.now(), files: 1, bytes: 1, problems }))
    // A result counts if it is not older than the archive.
    const later = new Date(Date.now() + dayMs)
    utimesSync(path, later, later)
  }
  const find = () => advised(server, clock, 'backup-')

  test('[SYS-29] without any backup, and with one that grows old, there is advice', async () => {
    expect(await find()).toMatchObject([{ id: 'backup-age', severity: 'high', title: 'There is no backup' }])
    verify(await backUp())
    expect(await find()).toEqual([])
    clock.advance(adviceBackupAgeMs - 3 * adviceCachedMs)
    expect(await find()).toEqual([])
    clock.advance(2 * adviceCachedMs)
    expect(await find()).toMatchObject([{ id: 'backup-age', title: 'The newest backup is 2 days old' }])
    verify(await backUp())
    expect(await find()).toEqual([])
  })

  test('[SYS-29] a backup that was never verified, or not lately, is to be', async () => {
    const name = await backUp()
    expect(await find()).toMatchObject([
      {
        id: 'backup-unverified',
        severity: 'medium',
        title: 'No backup was verified',
        code: `npx plinth verify ${name}`,
      },
    ])
    verify(name)
    expect(await find()).toEqual([])
    // Nightly backups, of which the first alone was verified.
    clock.advance(adviceVerifiedAgeMs - dayMs)
    await backUp()
    expect(await find()).toEqual([])
    clock.advance(dayMs)
    expect(await find()).toMatchObject([{ id: 'backup-unverified', title: 'No backup was verified for 14 days' }])
    verify(await backUp())
    expect(await find()).toEqual([])
  })

  test('[SYS-29] a backup that cannot be restored is high', async () => {
    verify(await backUp())
    const name = await backUp()
    verify(name, ['data/databases/shared.sqlite is damaged'])
    expect(await find()).toMatchObject([
      {
        id: 'backup-damaged',
        severity: 'high',
        where: name,
        why: 'Its verification has found: data/databases/shared.sqlite is damaged',
      },
    ])
  })
})

describe('the disk', () => {
  test('[SYS-29] less than a tenth is of medium severity, and less than a gibibyte is high', async () => {
    const clock = manualClock(Date.now())
    const totalBytes = 100 * adviceDiskBytesMin
    let freeBytes = totalBytes / 10
    const folders: string[] = []
    const readDiskSpace = async (folder: string) => {
      folders.push(folder)
      return { freeBytes, totalBytes }
    }
    const options = { config: {}, clock, substitutes: { readDiskSpace } }
    const server = closing(await startServer(options, embedded), ({ close }) => close())
    const find = () => advised(server, clock, 'disk')
    expect(await find()).toEqual([])
    expect(folders).toEqual([server.dataFolder])
    freeBytes -= 1
    expect(await find()).toMatchObject([
      { severity: 'medium', title: '10.7 GB of disk space are left', why: expect.stringContaining('10 % of the disk') },
    ])
    freeBytes = adviceDiskBytesMin
    expect(await find()).toMatchObject([{ severity: 'medium' }])
    freeBytes -= 1
    expect(await find()).toMatchObject([{ severity: 'high', why: expect.stringContaining('1 % of the disk') }])
  })
})

describe('expiry', () => {
  test('[SYS-29] a client secret that is a token with an end is named before it ends', async () => {
    const clock = manualClock(Date.now())
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const tokenUntil = (ms: number) => `${part({ alg: 'ES256' })}.${part({ exp: Math.floor(ms / 1000) })}.signature`
    const config = {
      auth: {
        providers: {
          google: { clientId: 'id', clientSecret: tokenUntil(clock.now() + 15 * dayMs) },
          github: { clientId: 'id', clientSecret: 'two.dots.only' },
        },
      },
    } as const
    const server = closing(await startServer({ config, clock }, embedded), ({ close }) => close())
    const find = () => advised(server, clock, 'secret-expiry')
    expect(await find()).toEqual([])
    clock.advance(2 * dayMs)
    const [soon, ...others] = await find()
    expect(others).toEqual([])
    expect(soon).toMatchObject({
      id: 'secret-expiry:google',
      severity: 'high',
      title: 'The secret of a provider expires in 12 days',
      where: 'auth.providers.google.clientSecret',
    })
    expect(JSON.stringify(soon)).not.toContain('signature')
    clock.advance(13 * dayMs)
    expect(await find()).toMatchObject([{ title: 'The secret of a provider has expired' }])
  })
})

const text = { type: 'string' } as const
const clock = manualClock(Date.now())
const unlimited = { requests: 10_000_000 }
const indexed = {
  rateLimits: { db: unlimited, global: unlimited },
  databases: {
    shared: {
      tables: {
        orders: {
          schema: { customerId: text, status: text, city: text, note: text, number: { ...text, unique: true } },
          indexes: [
            { fields: ['customerId'] },
            { fields: ['status'] },
            { fields: ['city'] },
            { fields: ['city', 'note'] },
          ],
          access: { read: true },
        },
        small: { schema: { name: text }, indexes: [{ fields: ['name'] }], access: { read: true } },
      },
    },
  },
} as const

describeServer('indexes', { config: indexed, clock }, (server) => {
  test('[SYS-28] an index that nothing has used in a week is named', async () => {
    // The engine before has moved it.
    clock.set(Date.now())
    const base = '/api/db/shared/tables/orders'
    for (let page = 0; page < 6; page++) {
      const inserts = Array.from({ length: 200 }, (_, at) => ({
        customerId: `c${at % 40}`,
        status: `s${at % 20}`,
        city: `t${at % 30}`,
        number: `${page}-${at}`,
      }))
      expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    }
    const useIndexes = async () => {
      for (let at = 0; at < 100; at++) {
        const filters = [
          ['customerId', `c${at % 40}`],
          ['city', `t${at % 30}`],
        ]
        for (const [field, value] of filters) {
          const filter = encodeURIComponent(JSON.stringify([[field, '==', value]]))
          expect((await server.anonymous.get(`${base}?filter=${filter}&limit=5`)).status).toBe(200)
        }
      }
    }
    await useIndexes()
    expect(await advised(server, clock, 'unused-index:')).toEqual([])
    clock.advance(adviceIndexUnusedMs)
    // Not the small table, not the unique index, and of two that begin alike neither. What a remote database counts is
    // there a moment later.
    let found: readonly Advice[] = []
    for (let attempts = 0; attempts < 1000; attempts++) {
      found = await advised(server, clock, 'unused-index:')
      if (found.length === 1) break
      await useIndexes()
    }
    expect(found).toMatchObject([
      {
        id: 'unused-index:shared.orders:status',
        severity: 'low',
        title: 'Nothing uses the index on status',
        why: 'No request of the last 7 days is known to have used it. Each write updates it.',
        code: "// remove: { fields: ['status'] }",
      },
    ])
    expect((await advised(server, clock, 'redundant-index:')).map(({ id }) => id)).toEqual([
      'redundant-index:shared.orders:city',
    ])
  })
})

if (sharedEngine)
  describe('clocks of nodes', () => {
    test('[SYS-29] a node whose clock differs is named by the others', async () => {
      const storage = await openSharedStorage(sharedEngine)
      closing(storage, ({ remove }) => remove())
      const clock = manualClock(Date.now())
      const start = (offsetMs: number) => {
        const of = manualClock(clock.now() + offsetMs)
        return startServer({ config: {}, clock: of }, storage.engine)
      }
      const own = closing(await startServer({ config: {}, clock }, storage.engine), ({ close }) => close())
      for (const [offsetMs, expected] of [
        [adviceClockSkewMs - 1, []],
        [adviceClockSkewMs, [{ severity: 'high', title: 'The clock of a node is 2 s ahead' }]],
        [-90_000, [{ title: 'The clock of a node is 90 s behind' }]],
      ] as const) {
        const other = await start(offsetMs)
        for (let attempts = 0; attempts < 1000; attempts++)
          if ((await own.service.get('/api/nodes')).body.items.length === 2) break
        // The cache of the advice ends by the clock, which the other node's has to follow.
        const nodes = (await own.service.get('/api/nodes')).body.items as { at: string }[]
        const skewMs = Date.parse(nodes[1]?.at ?? '') - clock.now()
        expect(skewMs).toBe(offsetMs)
        expect(
          (await own.service.get('/api/advice')).body.items.filter(({ id }: Advice) => id.startsWith('clock:')),
        ).toMatchObject([...expected])
        await other.close()
        for (let attempts = 0; attempts < 1000; attempts++)
          if ((await own.service.get('/api/nodes')).body.items.length === 1) break
        await own.restart()
      }
    })
  })
