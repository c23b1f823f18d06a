/**
 * The grid of the dashboard over a table of a million rows with 200 columns and values of a megabyte, and over a table
 * of 500 columns: `node scripts/run.mjs bench/dashboard/dashboard.ts [rows] [folder]`. A folder that is named is kept,
 * and filled once.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildDashboard } from '../../scripts/build/dashboard.ts'
import { provideChromium } from '../../scripts/servers/programs.ts'
import { median } from '../setup/measure.ts'
import { startServer } from '../setup/processes.ts'
import { type MeasuredPage, openMeasuredPage } from './page.ts'
import { fillTables } from './seed.ts'

const configPath = 'bench/dashboard/plinth.config.ts'
const jumps = 20
const rollSeconds = 3
/** Frames that are counted, each with some new rows. */
const frames = 300
const pixelsPerFrame = 120

const ms = (value: number): string => `${value.toFixed(0)} ms`
const kB = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`
const MB = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`

function report(name: string, figure: string): void {
  console.log(`${name.padEnd(52)} ${figure}`)
}

async function measureTable(measured: MeasuredPage, url: string, path: string, rows: number): Promise<void> {
  const { page, sizes } = measured
  sizes.length = 0
  console.log(`\n${path}, ${rows.toLocaleString('en-US')} rows`)
  await page.goto(`${url}/dashboard/data/shared/${path}`)
  await page.getByText(`${rows.toLocaleString('en')} records`).waitFor()
  await page.locator('.data-cell').first().waitFor()
  report('first jump to the middle', ms(await measured.jump(rows / 2, rows)))
  const times: number[] = []
  const used = await measured.threadMs()
  for (let at = 0; at < jumps; at++) times.push(await measured.jump(((at * 0.618034) % 1) * rows, rows))
  const perJump = ((await measured.threadMs()) - used) / jumps
  report(`${jumps} jumps: median, longest`, `${ms(median(times))}, ${ms(Math.max(...times))}`)
  await measured.jump(rows / 2, rows)
  const before = await measured.threadMs()
  await measured.step(frames, pixelsPerFrame)
  const perFrame = ((await measured.threadMs()) - before) / frames
  report('processor time of the page: a jump, a frame', `${perJump.toFixed(1)} ms, ${perFrame.toFixed(1)} ms`)
  for (const isSideways of [false, true]) {
    await measured.jump(rows / 2, rows)
    const { fps, longestMs } = await measured.roll(rollSeconds, isSideways)
    report(isSideways ? 'wheel sideways' : 'wheel down', `${fps.toFixed(0)} frames/s, longest ${ms(longestMs)}`)
  }
  report('responses: count, largest', `${sizes.length}, ${kB(Math.max(...sizes))}`)
  const { residentBytes, heapBytes } = await measured.memory()
  report('memory: script, process', `${MB(heapBytes)}, ${residentBytes === null ? 'unknown' : MB(residentBytes)}`)
  report('elements', String(await measured.nodes()))
}

async function run(rows: number, named: string | undefined): Promise<void> {
  const program = provideChromium()
  if (program === null) throw new Error('There is no Chromium')
  await buildDashboard()
  const folder = named ?? mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  const isFilled = existsSync(join(folder, 'databases', 'shared.sqlite'))
  if (!isFilled) {
    await (await startServer(folder, null, configPath)).stop()
    fillTables(folder, rows)
  }
  await using stack = new AsyncDisposableStack()
  if (named === undefined) stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const server = await startServer(folder, null, configPath)
  stack.defer(() => server.stop())
  const measured = await openMeasuredPage(server.url, program)
  stack.defer(() => measured.close())
  await measureTable(measured, server.url, 'long', rows)
  await measureTable(measured, server.url, 'long?sort=rank:desc', rows)
  await measureTable(measured, server.url, 'wide', Math.min(rows, 10_000))
  console.log(`\nload ${loadavg()[0]?.toFixed(1)}`)
}

const [rows = '1000000', folder] = process.argv.slice(2)
await run(Number(rows), folder)
