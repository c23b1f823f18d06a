/** Asks as one types, and shows the three lists. Answers that come late, behind a newer question, are dropped. */

const [form, query, kind, state] = ['form', 'query', 'kind', 'state'].map((id) => document.getElementById(id))
const lists = ['both', 'words', 'vectors'].map((name) => [name, document.getElementById(name)])

/** Long enough to type the next letter, too short to wait for. */
const pauseMs = 120
let asked = 0
let timer = null

/** A place in a list, as a mark. */
function badge(name, place) {
  const mark = document.createElement('span')
  mark.className = name
  mark.textContent = place === null ? `not by ${name}` : `${name} ${place}`
  mark.toggleAttribute('data-missing', place === null)
  return mark
}

/** Everything is text: a note may hold anything. */
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

function tell(name, text = '') {
  document.body.dataset.state = name
  state.textContent = text
}

async function ask() {
  const turn = ++asked
  const q = query.value.trim()
  document.body.dataset.query = q
  if (q === '') {
    show({ both: [], words: [], vectors: [] })
    return tell('idle')
  }
  tell('asking')
  try {
    const response = await fetch(`search?${new URLSearchParams({ q, kind: kind.value })}`)
    const body = await response.json()
    if (turn !== asked) return
    if (!response.ok) throw new Error(body.message)
    show(body)
    tell('answered', body.words.length === 0 ? 'No note has all of these words.' : '')
  } catch (error) {
    if (turn === asked) tell('failed', error.message)
  }
}

function askSoon() {
  clearTimeout(timer)
  timer = setTimeout(ask, pauseMs)
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  clearTimeout(timer)
  ask()
})
query.addEventListener('input', askSoon)
kind.addEventListener('change', ask)
for (const button of document.querySelectorAll('footer button'))
  button.addEventListener('click', () => {
    query.value = button.textContent
    ask()
  })

// A link may bring its question along.
query.value = new URLSearchParams(location.search).get('q') ?? ''
if (query.value !== '') ask()
