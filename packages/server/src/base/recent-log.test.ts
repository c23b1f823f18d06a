import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ManualClock, manualClock } from './clock.ts'
import { createLog } from './log.ts'
import { type LogFilter, type LogPage, RecentLog } from './recent-log.ts'

const everything: LogFilter = { level: 'debug', event: null, requestId: null, text: null, fromMs: null, untilMs: null }
const page: LogPage = { before: null, limit: 1000, bytesMax: 1e9 }

function setUp(options: { readonly format?: 'json' | 'pretty'; readonly bytesMax?: number } = {}) {
  const clock: ManualClock = manualClock(Date.UTC(2026, 0, 1))
  const recent = new RecentLog(options.bytesMax ?? 1024 * 1024)
  const log = createLog({ level: 'debug', format: options.format ?? 'json', clock, recent, write() {} })
  const add = (requestId: string, error: unknown = 'x') =>
    log.error('http.request_failed', { requestId, endpoint: 'list', error })
  const find = async (filter: Partial<LogFilter> = {}, of: Partial<LogPage> = {}) => {
    log.flush()
    return recent.find({ ...everything, ...filter }, { ...page, ...of })
  }
  const ids = async (filter: Partial<LogFilter> = {}) =>
    (await find(filter)).lines.map(({ fields }) => fields.requestId)
  return { clock, log, recent, add, find, ids }
}

for (const format of ['json', 'pretty'] as const)
  test(`[SYS-22] lines are found newest first by level, event, request, text and time: ${format}`, async () => {
    const { clock, log, add, find, ids } = setUp({ format })
    add('r1', new Error('Zürich "quoted"'))
    clock.advance(1000)
    log.warn('config.warning', { warning: 'w' })
    clock.advance(1000)
    add('r2', { password: 'hunter2', at: 'x' })
    expect((await find()).lines.map(({ event }) => event)).toEqual([
      'http.request_failed',
      'config.warning',
      'http.request_failed',
    ])
    expect(await ids({ level: 'error' })).toEqual(['r2', 'r1'])
    expect(await ids({ event: 'http.request_failed' })).toEqual(['r2', 'r1'])
    expect((await find({ event: 'http' })).lines).toEqual([])
    expect(await ids({ requestId: 'r1' })).toEqual(['r1'])
    expect(await ids({ requestId: 'r' })).toEqual([])
    expect(await ids({ text: 'ZÜRICH "Quoted"' })).toEqual(['r1'])
    const start = Date.UTC(2026, 0, 1)
    expect((await find({ fromMs: start + 1000 })).lines).toHaveLength(2)
    expect((await find({ fromMs: start + 1000, untilMs: start + 2000 })).lines).toMatchObject([
      { atMs: start + 1000, level: 'warn', event: 'config.warning', fields: { warning: 'w' } },
    ])
    expect((await find({ fromMs: start + 90_000 })).lines).toEqual([])
    const [newest] = (await find()).lines
    expect(newest?.fields).toEqual({ requestId: 'r2', endpoint: 'list', error: { password: '[hidden]', at: 'x' } })
    expect(await ids({ text: 'hunter2' })).toEqual([])
  })

test('[SYS-23] the oldest lines are dropped beyond the bound', async () => {
  const { recent, add, ids } = setUp({ bytesMax: 256 * 1024 })
  const long = 'x'.repeat(10_000)
  for (let n = 0; n < 200; n++) add(`r${n}`, long)
  const found = await ids()
  expect(found.length).toBeGreaterThan(15)
  expect(found.length).toBeLessThan(27)
  expect(found).toEqual(Array.from(found, (_, at) => `r${199 - at}`))
  recent.add(Buffer.from('not a line of the log\n'))
  expect((await ids()).length).toBe(found.length)
})

test('[SYS-22] a search finds no line twice, and none that is added meanwhile', async () => {
  const { log, add, recent } = setUp()
  const fill = (name: string): void => {
    for (let n = 0; n < 10_000; n++) add(`${name}${n}`)
    log.flush()
  }
  fill('old')
  const searching = recent.find(everything, { ...page, limit: 100_000 })
  fill('new')
  const ids = (await searching).lines.map(({ fields }) => String(fields.requestId))
  expect(ids.length).toBeGreaterThan(0)
  expect(ids).toEqual(Array.from(ids, (_, at) => `old${9999 - at}`))
})

test('[SYS-22] pages contain every line that matches exactly once, whatever is added meanwhile', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 3000 }), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 20_000 }),
      async (sizes, limit, bytesMax) => {
        const { add, find } = setUp()
        for (const [n, size] of sizes.entries()) add(`r${n}`, 'é'.repeat(size))
        const seen: unknown[] = []
        for (let before: number | null = null; ; ) {
          const { lines, hasMore } = await find({}, { before, limit, bytesMax })
          expect(lines.length).toBeLessThanOrEqual(limit)
          seen.push(...lines.map(({ fields }) => fields.requestId))
          if (!hasMore) break
          expect(lines.length).toBeGreaterThan(0)
          before = lines.at(-1)?.position ?? null
          add('later')
        }
        expect(seen).toEqual(sizes.map((_, n) => `r${sizes.length - 1 - n}`))
      },
    ),
    { numRuns: 50 },
  ))
