/**
 * The live map does what its README says, in two windows of a real browser: changes, rows that enter and leave a view,
 * filters, and a server that is killed and comes back. The windows need Chromium; where there is none this says so, and
 * the README is run all the same.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Chromium, describeInBrowser, openChromium } from '../harness/chromium.ts'
import { describePageExample, repository } from '../harness/page-example.ts'

const example = describePageExample('live')
const tokenOf = (name: string): string => example.demo(name).replace('Authorization: Bearer ', '')

/** Runs in a page: resolves once it shows exactly these travellers, each at its place; rejects if it never does. */
function untilShown(expected: Readonly<Record<string, string>>): Promise<void> {
  const shown = () => {
    const marks = [...document.querySelectorAll<SVGElement>('[data-traveller]')]
    const entries = marks.map(({ dataset }) => [dataset.traveller, dataset.place] as const)
    return JSON.stringify(Object.fromEntries(entries.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))))
  }
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`It shows ${shown()}`)), 60_000)
    const look = () => {
      if (shown() !== JSON.stringify(expected)) return
      clearTimeout(timer)
      resolve()
    }
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true })
    look()
  })
}

/** Runs in a page. */
async function choose(region: string): Promise<void> {
  const select = document.getElementById('region') as HTMLSelectElement
  select.value = region
  select.dispatchEvent(new Event('change'))
}

/** Runs in a page: what was last told of a traveller. */
async function lastTold(name: string): Promise<string> {
  const told = [...document.querySelectorAll('#log li')].find((item) => item.textContent?.startsWith(name))
  return told?.className ?? ''
}

/** Runs in a page: how often it has read the whole view, and come back without having to. */
async function comings(): Promise<readonly [readings: number, recovered: number]> {
  const { readings, recovered } = document.body.dataset
  return [Number(readings), Number(recovered)]
}

describeInBrowser('the live map', 'two windows', (chromium) => {
  let anybody: Chromium
  let marie: Chromium

  beforeAll(async () => {
    anybody = await openChromium(chromium)
    marie = await openChromium(chromium)
    await anybody.open(`${example.demo('PAGE')}/`)
    await marie.open(`${example.demo('PAGE')}/#token=${tokenOf('MARIE')}`)
  })

  afterAll(async () => {
    await anybody?.close()
    await marie?.close()
  })

  /** What a list gives: the travellers a caller may see, and where they are. */
  async function view(token: string | null, region: string | null = null): Promise<Record<string, string>> {
    const filter = region === null ? '' : `&filter=${encodeURIComponent(JSON.stringify([['region', '==', region]]))}`
    const headers: Record<string, string> = token === null ? {} : { Authorization: `Bearer ${token}` }
    const response = await fetch(`${example.demo('DB')}/travellers?sort=id:asc${filter}`, { headers })
    const { items } = (await response.json()) as { items: { id: string; placeId: string }[] }
    return Object.fromEntries(items.map(({ id, placeId }) => [id, placeId]))
  }

  async function change(id: string, changes: object, name = 'MARIE'): Promise<void> {
    const response = await fetch(`${example.demo('DB')}/travellers/${id}`, {
      method: 'PATCH',
      headers: { Authorization: `Bearer ${tokenOf(name)}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(changes),
    })
    expect(response.status).toBe(200)
  }

  /** Both show what a list gives each of them. */
  async function bothShow(region: string | null = null): Promise<void> {
    await anybody.run(untilShown, await view(null, region))
    await marie.run(untilShown, await view(tokenOf('MARIE')))
  }

  const inItaly = { placeId: 'it-anzio', placeName: 'Anzio, Italy', region: 'Europe' }
  const inJapan = { placeId: 'jp-fuchu-tokyo', placeName: 'Fuchū, Japan', region: 'Asia' }

  test('a hundred journeys end where the records say', async () => {
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

  test('who hides leaves the window of others, and only moves in their own', async () => {
    await change('ada', { ...inItaly, shared: true })
    await bothShow()
    await change('ada', { ...inJapan, shared: false })
    await bothShow()
    expect(await view(null)).not.toHaveProperty('ada')
    expect(await anybody.run(lastTold, 'Ada')).toBe('removed')
    expect(await marie.run(lastTold, 'Ada')).toBe('modified')
  })

  test('a filtered window is told who arrives and who leaves', async () => {
    await change('ada', { ...inJapan, shared: true })
    await anybody.run(choose, 'Europe')
    await bothShow('Europe')
    await change('ada', inItaly)
    await bothShow('Europe')
    expect(await anybody.run(lastTold, 'Ada')).toBe('added')
    await change('ada', inJapan)
    await bothShow('Europe')
    expect(await anybody.run(lastTold, 'Ada')).toBe('removed')
    await anybody.run(choose, '')
    await bothShow()
  })

  test('a server that is killed and comes back is gone on from, with nothing missed', async () => {
    await bothShow()
    const windows = [anybody, marie]
    const before = await Promise.all(windows.map((window) => window.run(comings)))
    await example.kill()
    await example.start()
    await change('ada', inItaly)
    await change('emil', inJapan, 'OMAR')
    await bothShow()
    const after = await Promise.all(windows.map((window) => window.run(comings)))
    expect(after).toEqual(before.map(([readings, recovered]) => [readings, recovered + 1]))
  })
})
