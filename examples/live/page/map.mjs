/** Draws the map once, and updates the travelers in view with the events of `watch`. */
import { watch } from './watch.mjs'

const linesMax = 60
const find = (id) => document.getElementById(id)
const northUp = (lat) => -lat

/** Takes the token from the URL fragment, which is in no server log; stores it for reloads and hides it. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given !== null) {
    sessionStorage.setItem('token', given)
    history.replaceState(null, '', location.pathname)
  }
  return sessionStorage.getItem('token')
}

/** The token's subject, unverified; only used in the heading. */
const ownerOf = (token) => JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).sub

/** Draws a dot for every place, which together form the continents. */
async function drawLand(url) {
  const dots = []
  for (let cursor = '', more = true; more; ) {
    const query = new URLSearchParams({ fields: 'lat,lng', limit: '1000', after: cursor })
    const page = await (await fetch(`${url}/api/db/shared/tables/places?${query}`)).json()
    for (const { lat, lng } of page.items) dots.push(`M${lng} ${northUp(lat)}h0`)
    more = page.hasMore
    cursor = page.cursor
  }
  find('land').setAttribute('d', dots.join(''))
}

function element(name, attributes = {}) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

/** The travelers in view, each with its mark on the map, by id. */
const marks = new Map()

function show(row) {
  let mark = marks.get(row.id)?.mark
  if (!mark) {
    mark = element('g', { 'data-traveller': row.id })
    mark.append(element('circle', { r: 2.2 }), element('text', { x: 3.4, y: 1.7 }))
    find('travellers').append(mark)
  }
  marks.set(row.id, { row, mark })
  mark.setAttribute('class', row.shared ? 'traveller' : 'traveller hidden')
  mark.dataset.place = row.placeId
  mark.style.transform = `translate(${row.lng}px, ${northUp(row.lat)}px)`
  mark.lastElementChild.textContent = row.name
}

function hide(id) {
  marks.get(id)?.mark.remove()
  marks.delete(id)
}

/** A line of text. The content comes from other users, so it is never treated as markup. */
function line(words, quietWords, kind = '') {
  const item = document.createElement('li')
  const quiet = document.createElement('span')
  quiet.textContent = quietWords
  item.className = kind
  item.append(`${words} `, quiet)
  return item
}

const whereIs = ({ placeName, shared }) => (shared ? placeName : `${placeName}, hidden from others`)

function list() {
  const rows = [...marks.values()].map(({ row }) => row).sort((a, b) => (a.name < b.name ? -1 : 1))
  find('list').replaceChildren(...rows.map((row) => line(row.name, whereIs(row))))
  find('count').textContent = String(rows.length)
}

function note(words, quietWords, kind) {
  const log = find('log')
  log.prepend(line(words, quietWords, kind))
  if (log.children.length > linesMax) log.lastElementChild.remove()
}

/** Counters of events, for tests of the page. */
function count(what) {
  document.body.dataset[what] = String(Number(document.body.dataset[what]) + 1)
}

const stateTexts = { connecting: 'connecting', open: 'live', refused: 'the token is no longer valid' }

async function start() {
  const { url } = await (await fetch('settings.json')).json()
  const token = takeToken()
  if (token !== null) find('who').textContent = ownerOf(token)
  const watching = watch({
    url,
    token,
    table: 'travellers',
    onRows(rows) {
      for (const id of [...marks.keys()]) hide(id)
      rows.forEach(show)
      list()
      count('listings')
      note('listed', `${rows.length} travelers`, '')
    },
    onChange(type, id, row) {
      const before = marks.get(id)?.row
      if (row) show(row)
      else hide(id)
      list()
      note((row ?? before)?.name ?? id, row ? `${type}: ${whereIs(row)}` : `${type} from this view`, type)
    },
    onState(state) {
      if (state === 'refused') sessionStorage.removeItem('token')
      document.body.dataset.state = state
      find('state').textContent = stateTexts[state]
    },
    onRecovered() {
      count('recovered')
      note('reconnected', 'nothing was missed', '')
    },
  })
  find('region').onchange = ({ target }) =>
    watching.setFilters(target.value === '' ? null : [['region', '==', target.value]])
  await drawLand(url)
}

start()
