/**
 * The notes-search example: words and vectors complement each other, and the service key never leaves the server. The
 * page is tested in Chromium if it is installed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createEmbedding, dimensions } from '../../../../examples/notes-search/embedding.ts'
import { readNotes } from '../../../../examples/notes-search/notes.ts'
import { fuse, type Results } from '../../../../examples/notes-search/search.ts'
import { describePageExample } from '../harness/examples/page-example.ts'
import { type Chromium, describeInBrowser, openChromium } from '../harness/processes/chromium.ts'

const example = describePageExample('notes-search')

const request = (params: Record<string, string>) =>
  fetch(`${example.demo('PAGE')}/search?${new URLSearchParams(params)}`)
const search = async (q: string, kind = ''): Promise<Results> => (await request({ q, kind })).json() as Promise<Results>

describe('search', () => {
  test('every note has a record and a vector', async () => {
    const total = readNotes().length
    expect(total).toBe(14_180)
    const service = example.demo('KEY').replace('X-Platform-Service-Key: ', '')
    const headers = { 'X-Platform-Service-Key': service, 'Content-Type': 'application/json' }
    const count = await fetch(`${example.demo('API')}/db/shared/tables/notes/count`, { headers })
    expect(await count.json()).toEqual({ total })
    const body = JSON.stringify({ action: 'describe' })
    const described = await fetch(`${example.demo('API')}/vector/notes`, { method: 'POST', headers, body })
    expect(await described.json()).toMatchObject({ vectorCount: total, dimensions })
  })

  test('vectors find notes that words do not, and the reverse', async () => {
    const byMeaning = await search('what a carpenter hits nails with')
    expect(byMeaning.words).toEqual([])
    expect(byMeaning.both[0]?.title).toContain('hammer')
    const byWord = await search('brindisi')
    expect(byWord.words.map(({ title }) => title)).toEqual(['Appian Way'])
    expect(byWord.vectors.map(({ title }) => title)).not.toContain('Appian Way')
    expect(byWord.both.slice(0, 2).map(({ title }) => title)).toContain('Appian Way')
  })

  test('hits contain their ranks, and a kind filters the results', async () => {
    for (const kind of ['', 'food', 'thing']) {
      const { both, words, vectors } = await search('bread', kind)
      expect(both).toHaveLength(10)
      for (const hit of [...both, ...words, ...vectors]) if (kind !== '') expect(hit.kind as string).toBe(kind)
      expect(words.map((hit) => hit.words)).toEqual(words.map((_, at) => at + 1))
      expect(vectors.map((hit) => hit.vectors)).toEqual(vectors.map((_, at) => at + 1))
    }
  })

  test('special characters in a query are treated as text', async () => {
    for (const q of [
      '"',
      "'; --",
      '*',
      'a" OR b',
      'NEAR(a b)',
      '%',
      '!!!',
      '\u0000',
      'x '.repeat(99),
      '日本',
      '\ud800',
    ])
      expect([q, (await request({ q })).status]).toEqual([q, 200])
    expect(await search('!!!')).toEqual({ both: [], words: [], vectors: [] })
  })

  test('invalid queries are refused', async () => {
    for (const params of [
      {},
      { q: '' },
      { q: ' ' },
      { q: 'x'.repeat(201) },
      { q: 'x', kind: 'all' },
      { q: 'x', kind: '__proto__' },
    ])
      expect((await request(params as Record<string, string>)).status).toBe(400)
    expect((await fetch(`${example.demo('PAGE')}/search?q=x`, { method: 'POST' })).status).toBe(404)
  })

  test('no response contains the service key', async () => {
    const key = example.demo('KEY').replace('X-Platform-Service-Key: ', '')
    expect(key.length).toBeGreaterThan(16)
    for (const path of [
      '/',
      '/search.js',
      '/search.css',
      '/search?q=bread',
      '/search?q=',
      '/nothing',
      '/../demo.env',
      '/start.ts',
      '/data/demo.env',
    ]) {
      const response = await fetch(example.demo('PAGE') + path)
      const headers = [...response.headers].flat().join('\n')
      expect([path, `${headers}${await response.text()}`.includes(key)]).toEqual([path, false])
    }
    expect((await fetch(`${example.demo('API')}/db/shared/tables/notes`)).status).toBe(401)
  })

  test('a restart does not repeat the import', async () => {
    const before = await search('goat cheese')
    await example.kill()
    await example.start()
    expect(await search('goat cheese')).toEqual(before)
  })
})

describe('ranking and embedding', () => {
  test('rank fusion prefers good ranks in two lists to the best in one, in any order of the lists', () => {
    expect(
      fuse([
        ['a', 'b', 'c'],
        ['d', 'e', 'c'],
      ]),
    ).toEqual(['c', 'a', 'd', 'b', 'e'])
    expect(
      fuse([
        ['d', 'e', 'c'],
        ['a', 'b', 'c'],
      ])[0],
    ).toBe('c')
    expect(fuse([['a'], []])).toEqual(['a'])
    expect(fuse([])).toEqual([])
  })

  test('vectors are deterministic, of length 1, and similar for similar texts', () => {
    const texts = [
      'a fruit with red or yellow skin and sweet flesh: apple',
      'a sweet juicy fruit with green skin: pear',
      'a structure that carries a road over a river: bridge',
      'a narrow bridge of ropes that carries people over a river',
    ]
    const [one, other] = [createEmbedding(texts), createEmbedding(texts)]
    const similarity = (a: string, b: string): number => {
      const vector = one.embed(b)
      return one.embed(a).reduce((sum, value, at) => sum + value * (vector[at] as number), 0)
    }
    for (const text of [...texts, 'aple', 'x', '\u00c4pfel']) {
      expect(one.embed(text)).toEqual(other.embed(text))
      expect(similarity(text, text)).toBeCloseTo(1, 2)
    }
    expect(one.embed('of the, and!')).toEqual(Array(dimensions).fill(0))
    // By the same words, by n-grams, and by context alone: no text contains both words.
    for (const [text, like, unlike] of [
      ['sweet fruit', texts[0], texts[2]],
      ['aple', 'apple', 'bridge'],
      ['apple', 'pear', 'ropes'],
    ] as const)
      expect([text, similarity(text, like ?? '') > similarity(text, unlike ?? '') + 0.1]).toEqual([text, true])
  })
})

/** Runs in a page: searches, and returns the titles of each list once the results are shown. */
async function searchInPage(q: string, kind: string): Promise<Record<string, string[]>> {
  const query = document.getElementById('query') as HTMLInputElement
  const select = document.getElementById('kind') as HTMLSelectElement
  document.body.dataset.state = 'waiting'
  query.value = q
  select.value = kind
  select.dispatchEvent(new Event('change'))
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`State: ${document.body.dataset.state}`)), 60_000)
    const check = () => {
      if (!['answered', 'failed', 'idle'].includes(document.body.dataset.state ?? '')) return
      clearTimeout(timer)
      resolve()
    }
    new MutationObserver(check).observe(document.body, { attributes: true })
    check()
  })
  const titles = (id: string) =>
    [...document.querySelectorAll(`#${id} li strong`)].map((title) => title.textContent ?? '')
  return {
    state: [document.body.dataset.state ?? ''],
    both: titles('both'),
    words: titles('words'),
    vectors: titles('vectors'),
  }
}

describeInBrowser('the notes-search example', 'the page', (chromium) => {
  let window: Chromium

  beforeAll(async () => {
    window = await openChromium(chromium)
    await window.open(`${example.demo('PAGE')}/`)
  })
  afterAll(() => window?.close())

  test('shows the results of the search endpoint', async () => {
    for (const [q, kind] of [
      ['what a carpenter hits nails with', ''],
      ['cheese from goats', 'food'],
      ['brindisi', ''],
    ] as const) {
      const { both, words, vectors } = await search(q, kind)
      const titlesOf = (hits: Results['both']) => hits.map(({ title }) => title)
      expect(await window.run(searchInPage, q, kind)).toEqual({
        state: ['answered'],
        both: titlesOf(both),
        words: titlesOf(words),
        vectors: titlesOf(vectors),
      })
    }
    expect((await window.run(searchInPage, '  ', '')).both).toEqual([])
  })

  test('a query is rendered as text', async () => {
    const shown = await window.run(searchInPage, '<img src=x onerror=document.body.dataset.hacked=1>', '')
    expect(shown.state).toEqual(['answered'])
    expect(await window.run(async () => document.body.dataset.hacked ?? null)).toBeNull()
  })
})
