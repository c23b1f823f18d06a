/**
 * The live example in two windows of a real browser: changes, rows that enter and leave a view, filters, and a restart
 * of a killed server. Without Chromium only the README is tested.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describePageExample, repository } from '../harness/examples/page-example.ts'
import { type Chromium, describeInBrowser, openChromium } from '../harness/processes/chromium.ts'

const example = describePageExample('live')
const tokenOf = (name: string): string => example.demo(name).replace('Authorization: Bearer ', '')

/** Runs in a page: resolves once it shows exactly these travelers at these places; rejects after a timeout. */
function untilShown(expected: Readonly<Record<string, string>>): Promise<void> {
  const shown = () => {
    const marks = [...document.querySelectorAll<SVGElement>('[data-traveler]')]
    const entries = marks.map(({ dataset }) => [dataset.traveler, dataset.place] as const)
    return JSON.stringify(Object.fromEntries(entries.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))))
  }
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Shown: ${shown()}`)), 60_000)
    const check = () => {
      if (shown() !== JSON.stringify(expected)) return
      clearTimeout(timer)
      resolve()
    }
    new MutationObserver(check).observe(document.body, { subtree: true, childList: true, attributes: true })
    check()
  })
}

/** Runs in a page. */
async function choose(region: string): Promise<void> {
  const select = document.getElementById('region') as HTMLSelectElement
  select.value = region
  select.dispatchEvent(new Event('change'))
}

/** Runs in a page: the type of the last message about a traveler. */
async function lastMessage(name: string): Promise<string> {
  const item = [...document.querySelectorAll('#log li')].find((line) => line.textContent?.startsWith(name))
  return item?.className ?? ''
}

/** Runs in a page: how often it has listed the view, and resumed without listing it. */
async function readCounters(): Promise<readonly [listings: number, recovered: number]> {
  const listings = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/tables/travelers?'))
  const lines = [...document.querySelectorAll('#log li')]
  return [listings.length, lines.filter(({ textContent }) => textContent?.includes('nothing was missed')).length]
}

/** Runs in a page. */
async function press(name: string, label: string): Promise<void> {
  const line = [...document.querySelectorAll('#list li')].find(({ textContent }) => textContent?.startsWith(name))
  const button = [...(line?.querySelectorAll('button') ?? [])].find(({ textContent }) => textContent === label)
  if (!button) throw new Error(`No button ${label} for ${name}`)
  button.click()
}

describeInBrowser('the live example', 'two windows', (chromium) => {
  let anonymous: Chromium
  let marie: Chromium

  beforeAll(async () => {
    anonymous = await openChromium(chromium)
    marie = await openChromium(chromium)
    await anonymous.open(`${example.demo('PAGE')}/`)
    await marie.open(`${example.demo('PAGE')}/#token=${tokenOf('MARIE')}`)
  })

  afterAll(async () => {
    await anonymous?.close()
    await marie?.close()
  })

  /** The travelers that a caller may list, with their places. */
  async function view(token: string | null, region: string | null = null): Promise<Record<string, string>> {
    const filter = region === null ? '' : `&filter=${encodeURIComponent(JSON.stringify([['region', '==', region]]))}`
    const headers: Record<string, string> = token === null ? {} : { Authorization: `Bearer ${token}` }
    const response = await fetch(`${example.demo('DB')}/travelers?sort=id:asc${filter}`, { headers })
    const { items } = (await response.json()) as { items: { id: string; placeId: string }[] }
    return Object.fromEntries(items.map(({ id, placeId }) => [id, placeId]))
  }

  async function change(id: string, changes: object, name = 'MARIE'): Promise<void> {
    const response = await fetch(`${example.demo('DB')}/travelers/${id}`, {
      method: 'PATCH',
      headers: { Authorization: `Bearer ${tokenOf(name)}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(changes),
    })
    expect(response.status).toBe(200)
  }

  /** Expects each window to show what its user can list. */
  async function bothShow(region: string | null = null): Promise<void> {
    await anonymous.run(untilShown, await view(null, region))
    await marie.run(untilShown, await view(tokenOf('MARIE')))
  }

  const inItaly = { placeId: 'it-anzio', placeName: 'Anzio, Italy', region: 'Europe' }
  const inJapan = { placeId: 'jp-fuchu-tokyo', placeName: 'Fuchū, Japan', region: 'Asia' }

  test('the windows match the records after a hundred steps', async () => {
    await bothShow()
    const travel = Bun.spawn([process.execPath, 'examples/live/travel.ts', '--every', '0'], {
      cwd: repository,
      env: { DB: example.demo('DB'), MARIE: example.demo('MARIE'), OMAR: example.demo('OMAR') },
      stdout: 'ignore',
      stderr: 'inherit',
    })
    expect(await travel.exited).toBe(0)
    await bothShow()
  })

  test('a hidden traveler is removed from the windows of other users, and modified in the window of the owner', async () => {
    await change('ada', { ...inItaly, shared: true })
    await bothShow()
    await change('ada', { ...inJapan, shared: false })
    await bothShow()
    expect(await view(null)).not.toHaveProperty('ada')
    expect(await anonymous.run(lastMessage, 'Ada')).toBe('removed')
    expect(await marie.run(lastMessage, 'Ada')).toBe('modified')
  })

  test('a filtered window receives travelers that enter and leave the filter', async () => {
    await change('ada', { ...inJapan, shared: true })
    await anonymous.run(choose, 'Europe')
    await bothShow('Europe')
    await change('ada', inItaly)
    await bothShow('Europe')
    expect(await anonymous.run(lastMessage, 'Ada')).toBe('added')
    await change('ada', inJapan)
    await bothShow('Europe')
    expect(await anonymous.run(lastMessage, 'Ada')).toBe('removed')
    await anonymous.run(choose, '')
    await bothShow()
  })

  test('owners hide and share their travelers with the buttons of the page', async () => {
    const before = await view(null)
    await marie.run(press, 'Ada', 'Hide')
    const { ada: _, ...others } = before
    await anonymous.run(untilShown, others)
    await marie.run(press, 'Ada', 'Share')
    await anonymous.run(untilShown, before)
    await bothShow()
    await expect(marie.run(press, 'Emil', 'Hide')).rejects.toThrow('No button')
  })

  test('windows resume after a crash of the server without missing a change', async () => {
    await bothShow()
    const windows = [anonymous, marie]
    const before = await Promise.all(windows.map((window) => window.run(readCounters)))
    await example.kill()
    await example.start()
    await change('ada', inItaly)
    await change('emil', inJapan, 'OMAR')
    await bothShow()
    const after = await Promise.all(windows.map((window) => window.run(readCounters)))
    expect(after).toEqual(before.map(([listings, recovered]) => [listings, recovered + 1]))
  })
})
