/** Searches while the user types, and shows the three lists. Responses to outdated queries are discarded. */

const [form, query, kind, state] = ['form', 'query', 'kind', 'state'].map((id) => document.getElementById(id))
const lists = ['both', 'words', 'vectors'].map((name) => [name, document.getElementById(name)])

/** Debounce interval: long enough to type the next letter, short enough not to be noticed. */
const debounceMs = 120
let requests = 0
let timer = null

/** A badge with the rank in a list. */
function badge(name, rank) {
  const mark = document.createElement('span')
  mark.className = name
  mark.textContent = rank === null ? `not by ${name}` : `${name} ${rank}`
  mark.toggleAttribute('data-missing', rank === null)
  return mark
}

/** Notes are rendered as text, never as markup. */
function item(name, { id, title, text, words, vectors }) {
  const line = document.createElement('li')
  line.dataset.id = id
  const head = document.createElement('strong')
  head.textContent = title
  const body = document.createElement('p')
  body.textContent = text
  line.append(head, body)
  if (name === 'both') line.append(badge('words', words), badge('vectors', vectors))
  return line
}

function show(results) {
  for (const [name, list] of lists) list.replaceChildren(...results[name].map((hit) => item(name, hit)))
}

function showState(name, text = '') {
  document.body.dataset.state = name
  state.textContent = text
}

async function search() {
  const request = ++requests
  const q = query.value.trim()
  document.body.dataset.query = q
  if (q === '') {
    show({ both: [], words: [], vectors: [] })
    return showState('idle')
  }
  showState('searching')
  try {
    const response = await fetch(`search?${new URLSearchParams({ q, kind: kind.value })}`)
    const body = await response.json()
    if (request !== requests) return
    if (!response.ok) throw new Error(body.message)
    show(body)
    showState('answered', body.words.length === 0 ? 'No note has all of these words.' : '')
  } catch (error) {
    if (request === requests) showState('failed', error.message)
  }
}

function searchSoon() {
  clearTimeout(timer)
  timer = setTimeout(search, debounceMs)
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  clearTimeout(timer)
  search()
})
query.addEventListener('input', searchSoon)
kind.addEventListener('change', search)
for (const button of document.querySelectorAll('footer button'))
  button.addEventListener('click', () => {
    query.value = button.textContent
    search()
  })

// A link may contain a query.
query.value = new URLSearchParams(location.search).get('q') ?? ''
if (query.value !== '') search()
