/**
 * The arena example in two windows of a real browser: players see each other's moves, and the game resumes after a
 * crash of the server. Without Chromium only the README is tested.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describePageExample } from '../harness/examples/page-example.ts'
import { type Chromium, describeInBrowser, openChromium } from '../harness/processes/chromium.ts'

const example = describePageExample('arena')

/** Positions by key, such as `{ g1: '3,4' }`. */
type Places = Readonly<Record<string, string>>

/** Runs in a page: resolves once the page shows the expected positions, names or state; rejects after a timeout. */
function untilShown(kind: 'places' | 'names' | 'state', expected: unknown): Promise<void> {
  const marks = () => [...document.querySelectorAll<SVGElement>('.player')]
  const sorted = (entries: [string, unknown][]) => Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
  const readers = {
    places: () => sorted(marks().map(({ dataset }) => [dataset.key ?? '', dataset.at])),
    names: () => sorted(marks().map((mark) => [mark.dataset.key ?? '', mark.textContent])),
    state: () => document.body.dataset.state,
  }
  return new Promise((resolve, reject) => {
    const shown = () => JSON.stringify(readers[kind]())
    const timer = setTimeout(
      () => reject(new Error(`Shown: ${shown()}, expected: ${JSON.stringify(expected)}`)),
      60_000,
    )
    const check = () => {
      if (shown() !== JSON.stringify(expected)) return
      clearTimeout(timer)
      observer.disconnect()
      resolve()
    }
    const observer = new MutationObserver(check)
    observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })
    check()
  })
}

/**
 * Runs in a page: moves one step with the keyboard, along the shortest path to a gem, or anywhere if there is none.
 * Resolves when the player has moved.
 */
function step(): Promise<void> {
  const placeOf = (mark: SVGElement | null) => (mark?.dataset.at ?? '').split(',').map(Number) as [number, number]
  const wallOf = (wall: SVGElement) => `${wall.getAttribute('x')},${wall.getAttribute('y')}`
  const placesOf = (selector: string) =>
    [...document.querySelectorAll<SVGElement>(selector)].map((mark) => mark.dataset.at ?? wallOf(mark))
  const closed = new Set(placesOf('#walls rect, .player'))
  const gems = new Set(placesOf('.gem'))
  const ways = [
    ['ArrowUp', 0, -1],
    ['ArrowDown', 0, 1],
    ['ArrowLeft', -1, 0],
    ['ArrowRight', 1, 0],
  ] as const
  const own = document.querySelector<SVGElement>('.player.own')
  const paths: { place: [number, number]; codes: string[] }[] = [{ place: placeOf(own), codes: [] }]
  let found: readonly string[] = []
  for (const { place, codes } of paths) {
    if (gems.has(place.join(',')) && codes.length > 0) {
      found = codes
      break
    }
    if (found.length === 0) found = codes
    for (const [code, dx, dy] of ways) {
      const [x, y] = [place[0] + dx, place[1] + dy]
      if (x < 0 || y < 0 || x > 23 || y > 13 || closed.has(`${x},${y}`)) continue
      closed.add(`${x},${y}`)
      paths.push({ place: [x, y], codes: [...codes, code] })
    }
  }
  const [code = ''] = found
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no move with ${code} from ${own?.dataset.at}`)), 60_000)
    const observer = new MutationObserver(() => {
      clearTimeout(timer)
      observer.disconnect()
      resolve()
    })
    observer.observe(own as SVGElement, { attributeFilter: ['data-at'] })
    for (const type of ['keydown', 'keyup']) window.dispatchEvent(new KeyboardEvent(type, { code }))
  })
}

/** Runs in a page. */
async function rename(name: string): Promise<void> {
  const input = document.getElementById('name') as HTMLInputElement
  input.value = name
  input.dispatchEvent(new Event('change'))
}

/** Runs in a page. */
async function leave(): Promise<void> {
  document.getElementById('leave')?.click()
}

/** Runs in a page. */
async function userOf(): Promise<string> {
  return document.body.dataset.user ?? ''
}

describeInBrowser('the arena example', 'two windows', (chromium) => {
  let ann: Chromium
  let bob: Chromium

  /** The room as returned by the admin API; empty before the first player has rejoined. */
  async function readRoom(): Promise<{ places: Places; gems: Readonly<Record<string, number>> }> {
    const response = await fetch(`${example.demo('ROOM')}/admin/room?namespace=arena&id=main`, {
      headers: { 'X-Platform-Service-Key': example.demo('PLINTH_SERVICE_KEY') },
    })
    if (response.status === 404) return { places: {}, gems: {} }
    const { shared, players } = (await response.json()) as {
      shared: { players: Record<string, { x: number; y: number }> }
      players: { userId: string; state: { gems: number } }[]
    }
    const ids = Object.keys(shared.players).sort()
    return {
      places: Object.fromEntries(ids.map((id) => [id, `${shared.players[id]?.x},${shared.players[id]?.y}`])),
      gems: Object.fromEntries(players.map(({ userId, state }) => [userId, state.gems])),
    }
  }

  /** Saves of rooms since the start of the server. */
  async function readSaves(): Promise<number> {
    const response = await fetch(new URL('/metrics', example.demo('ROOM')), {
      headers: { 'X-Platform-Service-Key': example.demo('PLINTH_SERVICE_KEY') },
    })
    return Number(/^rooms_saves_total (\d+)$/m.exec(await response.text())?.[1])
  }

  /** Waits until both windows show the positions of the server. A page may open before its player has joined. */
  async function bothShow(): Promise<Places> {
    let { places } = await readRoom()
    while (Object.keys(places).length < 2) ({ places } = await readRoom())
    for (const window of [ann, bob]) await window.run(untilShown, 'places', places)
    return places
  }

  /** Moves the player of a window by one step; resolves when the server has it. The page moves it before. */
  async function walk(window: Chromium): Promise<void> {
    const user = await window.run(userOf)
    const { places: before } = await readRoom()
    await window.run(step)
    let after = before
    while (after[user] === before[user]) after = (await readRoom()).places
  }

  async function bothShowNames(names: Places): Promise<void> {
    for (const window of [ann, bob]) await window.run(untilShown, 'names', names)
  }

  beforeAll(async () => {
    ann = await openChromium(chromium)
    bob = await openChromium(chromium)
    for (const window of [ann, bob]) {
      await window.open(`${example.demo('PAGE')}/`)
      await window.run(untilShown, 'state', 'joined')
    }
  })

  afterAll(async () => {
    await ann?.close()
    await bob?.close()
  })

  test('players see each other move', async () => {
    for (const window of [ann, bob]) {
      const before = await bothShow()
      await walk(window)
      const after = await bothShow()
      const user = await window.run(userOf)
      expect(Object.keys(before)).toHaveLength(2)
      expect(Object.keys(after).filter((id) => after[id] !== before[id])).toEqual([user])
    }
  })

  test('a player collects a gem by moving to it', async () => {
    const user = await ann.run(userOf)
    const { gems: before } = await readRoom()
    while ((await readRoom()).gems[user] === before[user]) await walk(ann)
    expect((await readRoom()).gems[user]).toBeGreaterThan(before[user] as number)
    await bothShow()
  })

  test('a name is shown to all players, and never as markup', async () => {
    const [first, second] = [await ann.run(userOf), await bob.run(userOf)]
    await ann.run(rename, 'Ann')
    await bob.run(rename, '<b>Bob</b>')
    await bothShowNames(Object.fromEntries(Object.entries({ [first]: 'Ann', [second]: '<b>Bob</b>' }).sort()))
  })

  test('the game resumes after a crash of the server', async () => {
    const places = await bothShow()
    const { gems } = await readRoom()
    const [first, second] = [await ann.run(userOf), await bob.run(userOf)]
    // One save runs at a time, so the second one from now begins after both windows have shown the positions.
    for (const name of ['Robert', 'Bob']) {
      const saves = await readSaves()
      await bob.run(rename, name)
      await bothShowNames(Object.fromEntries(Object.entries({ [first]: 'Ann', [second]: name }).sort()))
      while ((await readSaves()) === saves);
    }
    await example.kill()
    for (const window of [ann, bob]) await window.run(untilShown, 'state', 'reconnecting')
    await example.start()
    for (const window of [ann, bob]) await window.run(untilShown, 'state', 'joined')
    expect(await bothShow()).toEqual(places)
    expect((await readRoom()).gems).toEqual(gems)
    expect(await ann.run(userOf)).toEqual(first)
    expect(await bob.run(userOf)).toEqual(second)
    await walk(bob)
    const after = await bothShow()
    expect(Object.keys(after).filter((id) => after[id] !== places[id])).toEqual([second])
  })

  test('a player who leaves is removed', async () => {
    const user = await ann.run(userOf)
    const { [user]: place } = await bothShow()
    await bob.run(leave)
    await bob.run(untilShown, 'state', 'closed')
    await ann.run(untilShown, 'places', { [user]: place })
  })
})
