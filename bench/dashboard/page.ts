/** A page of the dashboard that is measured: its requests, its memory, its frames, and how long a jump takes. */
import { chromium, type Page } from 'playwright-core'
import { readMemoryBytes } from '../setup/proc.ts'
import { serviceKey } from '../setup/processes.ts'

export interface MeasuredPage {
  readonly page: Page
  /** Bytes of each response for rows, as sent. */
  readonly sizes: number[]
  /** Scrolls so that a row is first, and returns the milliseconds until its cells are painted. */
  jump(row: number, rows: number): Promise<number>
  /** Scrolls by the wheel, and returns the frames per second and the longest one in milliseconds. */
  roll(seconds: number, sideways?: boolean): Promise<{ readonly fps: number; readonly longestMs: number }>
  /** Scrolls by `pixels` in each of `count` frames, and waits until what is in view is there. */
  step(count: number, pixels: number): Promise<void>
  /** Processor time of the page's thread, in milliseconds, which other work on the machine changes little. */
  threadMs(): Promise<number>
  /** Of the process of the page and of its script, after a collection. */
  memory(): Promise<{ readonly residentBytes: number | null; readonly heapBytes: number }>
  nodes(): Promise<number>
  close(): Promise<void>
}

const rowHeight = 34
const email = `${crypto.randomUUID()}@example.com`
const password = 'a long password of a benchmark'

async function createOwner(url: string): Promise<void> {
  const headers = { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' }
  const send = (method: string, path: string, body: object) =>
    fetch(`${url}/api/auth/admin/${path}`, { method, headers, body: JSON.stringify(body) })
  const { user } = (await (await send('POST', 'users', { email, password })).json()) as { user: { id: string } }
  await send('PUT', `users/${user.id}/dashboard-role`, { role: 'owner' })
}

/** Scrolls in the page and waits until the first row in view has values, and for the frame after. */
const jumpInPage = async (top: number): Promise<number> => {
  const grid = document.querySelector('.data-grid') as HTMLElement
  const startedAt = performance.now()
  grid.scrollTop = top
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
  const isPending = (): boolean => {
    const { top: from, bottom: to } = grid.getBoundingClientRect()
    const inView = [...grid.querySelectorAll('.data-row')].filter((row) => {
      const { top: above, bottom: below } = row.getBoundingClientRect()
      return below > from && above < to
    })
    return inView.length < 10 || inView.some((row) => row.querySelector('.data-pending') !== null)
  }
  do await frame()
  while (isPending())
  await frame()
  return performance.now() - startedAt
}

const framesInPage = async (ms: number): Promise<{ frames: number; longestMs: number; ms: number }> => {
  const startedAt = performance.now()
  let [frames, longestMs, before] = [0, 0, startedAt]
  while (before - startedAt < ms) {
    const at = await new Promise<number>((resolve) => requestAnimationFrame(resolve))
    longestMs = Math.max(longestMs, at - before)
    before = at
    frames += 1
  }
  return { frames, longestMs, ms: before - startedAt }
}

const stepInPage = async ([count, pixels]: readonly [number, number]): Promise<void> => {
  const grid = document.querySelector('.data-grid') as HTMLElement
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
  for (let at = 0; at < count; at++) {
    grid.scrollTop += pixels
    await frame()
  }
  while (document.querySelector('.data-pending')) await frame()
}

export async function openMeasuredPage(url: string, program: string): Promise<MeasuredPage> {
  await createOwner(url)
  const browser = await chromium.launch({
    executablePath: program,
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  page.setDefaultTimeout(60_000)
  const cdp = await page.context().newCDPSession(page)
  const browserCdp = await browser.newBrowserCDPSession()
  const sizes: number[] = []
  const rowRequests = new Set<string>()
  await cdp.send('Network.enable')
  await cdp.send('Performance.enable')
  cdp.on('Network.responseReceived', ({ requestId, response }) => {
    if (response.url.includes('/tables/')) rowRequests.add(requestId)
  })
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (rowRequests.delete(requestId)) sizes.push(encodedDataLength)
  })
  const metric = async (wanted: string): Promise<number> => {
    const { metrics } = await cdp.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === wanted)?.value ?? 0
  }
  await page.goto(`${url}/dashboard`)
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Data' }).waitFor()
  return {
    page,
    sizes,
    async jump(row, rows) {
      const position = await page.evaluate(() => {
        const grid = document.querySelector('.data-grid') as HTMLElement
        return { scroll: grid.scrollHeight - grid.clientHeight, view: grid.clientHeight }
      })
      const full = Math.max(1, rows * rowHeight - position.view)
      return page.evaluate(jumpInPage, ((row * rowHeight) / full) * position.scroll)
    },
    async roll(seconds, isSideways = false) {
      await page.mouse.move(640, 500)
      const counted = page.evaluate(framesInPage, seconds * 1000)
      let isDone = false
      void counted.then(() => {
        isDone = true
      })
      while (!isDone) await page.mouse.wheel(isSideways ? 60 : 0, isSideways ? 0 : 120)
      const { frames, longestMs, ms } = await counted
      return { fps: (frames * 1000) / ms, longestMs }
    },
    step: (count, pixels) => page.evaluate(stepInPage, [count, pixels] as const),
    threadMs: async () => 1000 * (await metric('ThreadTime')),
    async memory() {
      await cdp.send('HeapProfiler.collectGarbage')
      const { processInfo } = await browserCdp.send('SystemInfo.getProcessInfo')
      const resident = processInfo
        .filter(({ type }) => type === 'renderer')
        .map(({ id }) => readMemoryBytes(id, 'VmRSS') ?? 0)
      return {
        residentBytes: resident.length === 0 ? null : Math.max(...resident),
        heapBytes: await metric('JSHeapUsedSize'),
      }
    },
    nodes: () => page.evaluate(() => document.querySelectorAll('*').length),
    close: () => browser.close(),
  }
}
