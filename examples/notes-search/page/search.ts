/** Searches while the user types, and shows the three lists. Outdated requests are aborted. */
import { find, make } from '../../page-dom.ts'
import type { Hit, Results } from '../search.ts'

/** Debounce interval: long enough to type the next letter, short enough not to be noticed. */
const debounceMs = 120

const query = find<HTMLInputElement>('query')
const kind = find<HTMLSelectElement>('kind')
let current = new AbortController()
let timer: ReturnType<typeof setTimeout> | undefined

/** A badge with the rank in a list. */
function createBadge(name: string, rank: number | null): HTMLElement {
  const badge = make('span', { className: name }, rank === null ? `not by ${name}` : `${name} ${rank}`)
  badge.toggleAttribute('data-missing', rank === null)
  return badge
}

/** Notes are rendered as text, never as markup. */
function createLine({ id, title, text, words, vectors }: Hit, isRanked: boolean): HTMLElement {
  const line = make('li', {}, make('strong', {}, title), make('p', {}, text))
  line.dataset.id = id
  if (isRanked) line.append(createBadge('words', words), createBadge('vectors', vectors))
  return line
}

function show(results: Results): void {
  for (const name of ['both', 'words', 'vectors'] as const)
    find(name).replaceChildren(...results[name].map((hit) => createLine(hit, name === 'both')))
}

function showState(state: string, text = ''): void {
  document.body.dataset.state = state
  find('state').textContent = text
}

/** The page has no key for the notes: it asks the endpoint of the example. */
async function request(q: string, signal: AbortSignal): Promise<Results> {
  const response = await fetch(`search?${new URLSearchParams({ q, kind: kind.value })}`, { signal })
  const body = await response.json()
  if (!response.ok) throw new Error(body.message)
  return body
}

async function search(): Promise<void> {
  clearTimeout(timer)
  current.abort()
  current = new AbortController()
  const { signal } = current
  const q = query.value.trim()
  document.body.dataset.query = q
  if (q === '') {
    show({ both: [], words: [], vectors: [] })
    return showState('idle')
  }
  showState('searching')
  try {
    const results = await request(q, signal)
    show(results)
    showState('answered', results.words.length === 0 ? 'No note has all of these words.' : '')
  } catch (error) {
    if (!signal.aborted) showState('failed', (error as Error).message)
  }
}

find('form').onsubmit = (event) => {
  event.preventDefault()
  void search()
}
query.oninput = () => {
  clearTimeout(timer)
  timer = setTimeout(search, debounceMs)
}
kind.onchange = search
for (const button of document.querySelectorAll('footer button'))
  button.addEventListener('click', () => {
    query.value = button.textContent ?? ''
    void search()
  })

// A link may contain a query.
query.value = new URLSearchParams(location.search).get('q') ?? ''
if (query.value !== '') void search()
