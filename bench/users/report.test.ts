/** Ratios and reports of the users run. */
import { expect, test } from 'bun:test'
import { Histogram } from '../load/histogram.ts'
import { linesOf, replaceMeasured } from '../report.ts'
import { testEnvironment } from '../setup/fixtures/environment.ts'
import { compare, type Round } from '../setup/measure.ts'
import { blockingVerdict, generationOf } from './measure.ts'
import { busyNote, toMarkdown } from './report.ts'

/** A round of one second with the given units and CPU. */
function round(units: number, cpuSeconds: number | null): Round {
  const latencies = new Histogram()
  latencies.add(5)
  return { units, seconds: 1, cpuSeconds, loadCpuSeconds: 0.5, latencies }
}

const roundsOf = (rounds: readonly Round[]): (() => Promise<Round>) => {
  const left = [...rounds]
  return async () => left.shift() as Round
}

const budgeted = { title: 'baseline', budget: 0.9 }

/** A comparison of rounds with the same share of a core. */
async function measured(share: number) {
  const server = { pid: 0, run: roundsOf([round(80, share), round(95, share), round(100, share)]) }
  const baseline = { baseline: budgeted, run: roundsOf([round(100, share), round(100, share), round(100, share)]) }
  return { scenario: { title: 'server' }, ...(await compare(server, [baseline], 3)) }
}

test('a ratio is the median over the rounds, each relative to the baseline in the same round', async () => {
  const { baselines, perSecond, cpuUs } = await measured(1)
  expect(baselines[0]).toMatchObject({ ratio: 0.95, perSecond: 100 })
  expect(perSecond).toBeCloseTo(275 / 3)
  expect(cpuUs).toBeCloseTo(3e6 / 275)
  expect(baselines[0]?.cpuRatio).toBeCloseTo(275 / 300)
})

test('unknown CPU is null, and so is its ratio', async () => {
  const server = { pid: 0, run: roundsOf([round(80, null)]) }
  const { cpuUs, serverShare, baselines } = await compare(
    server,
    [{ baseline: budgeted, run: roundsOf([round(100, 1)]) }],
    1,
  )
  expect({ cpuUs, serverShare, cpuRatio: baselines[0]?.cpuRatio }).toEqual({
    cpuUs: null,
    serverShare: null,
    cpuRatio: null,
  })
})

test('a line has a cell for every column, including whether its budget was met', async () => {
  const [server, baseline] = linesOf({ ...(await measured(1)), verdict: 'p99 < 40 ms ✓' })
  expect(server?.at(-1)).toBe('p99 < 40 ms ✓')
  expect(baseline?.slice(-3)).toEqual(['95%', '92%', '≥ 90% ✓'])
  expect(server).toHaveLength(baseline?.length ?? 0)
})

test.each([
  [39.9, 40, 'p99 < 40 ms ✓'],
  [40, 40, 'p99 < 40 ms ✗'],
  [null, 40, ''],
  [1, null, ''],
])('reads with a p99 of %p ms beside hashes of %p ms: %p', (p99Ms, hashMs, verdict) => {
  expect(blockingVerdict(p99Ms, hashMs)).toBe(verdict)
})

test('the generation of a session is read from its refresh token', () => {
  const payload = Buffer.from(JSON.stringify({ sub: 'u', gen: 12 })).toString('base64url')
  expect(generationOf(`POST / HTTP/1.1\r\n\r\n{"refreshToken":"head.${payload}.signature"}`)).toBe(12)
  expect(() => generationOf('POST / HTTP/1.1\r\n\r\n{"refreshToken":"opaque"}')).toThrow('generation')
})

test('a busy machine produces a warning', async () => {
  expect(busyNote([await measured(0.95)])).toBeNull()
  expect(busyNote([await measured(0.5)])).toContain('only 50% of their core')
  expect(busyNote([])).toBeNull()
})

test('only the users part of the page is replaced', async () => {
  const markdown = toMarkdown(testEnvironment, { rounds: 3, seconds: 1, warmupSeconds: 0 }, [await measured(1)])
  const begin = '<!-- measured users: begin -->'
  const end = '<!-- measured users: end -->'
  const page = `before\n${begin}\nold\n${end}\nafter`
  expect(replaceMeasured(page, 'users', markdown)).toBe(`before\n${begin}\n\n${markdown}\n\n${end}\nafter`)
  expect(markdown).toContain('SQLite 3.50.0')
  expect(markdown).toContain('| server | 92 | 10909.1 | baseline | 95% ✓ | 92% |')
})
