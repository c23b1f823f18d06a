/** The live map: one live list of travelers, drawn whenever it changes. Owners move their travelers optimistically. */
import { createClient, live, records } from 'plinth-client'
import { find, make } from '../../page-dom.ts'
import type config from '../plinth.config.ts'
import { createMark, drawPlaces, moveMark } from './marks.ts'

const logLines = 60

const token = takeToken()
const plinth = createClient<typeof config>(process.env.PLINTH_URL as string, [records, live], {
  getToken: () => token,
})
const { places, travelers } = plinth.db()
const userId = token && ownerOf(token)

type Traveler = Awaited<ReturnType<typeof travelers.get>>
type Place = Pick<Awaited<ReturnType<typeof places.get>>, 'id' | 'name' | 'countryName' | 'region' | 'lat' | 'lng'>
type Region = Traveler['region']

const landscape: Place[] = []

/** The travelers that the page shows, by id. */
let shown = new Map<string, Traveler>()
const marks = new Map<string, SVGGElement>()

/** Shows the travelers of a region, or of the world. Returns the function that stops it. */
function watch(region: Region | ''): () => void {
  const query = region ? travelers.where('region', '==', region) : travelers
  const list = query.sort('name').limit(1000).live()
  let before = 'loading'
  const update = () => {
    const { items, status, pending, error } = list.current
    if (error) sessionStorage.removeItem('token')
    showStatus(status, pending)
    if (status === 'loading' || status === 'closed') return
    if (before === 'loading') log('listed', `${items.length} travelers`)
    else logChanges(items)
    if (before === 'stale' && status === 'live') log('reconnected', 'nothing was missed')
    before = status
    show(items)
  }
  const stop = list.subscribe(update)
  update()
  return stop
}

function show(items: readonly Traveler[]): void {
  shown = new Map(items.map((traveler) => [traveler.id, traveler]))
  for (const [id, mark] of marks)
    if (!shown.has(id)) {
      mark.remove()
      marks.delete(id)
    }
  for (const traveler of items) {
    const mark = marks.get(traveler.id) ?? createMark(traveler.id)
    marks.set(traveler.id, mark)
    moveMark(mark, traveler)
  }
  find('list').replaceChildren(...items.map(createLine))
  find('count').textContent = String(items.length)
}

function createLine(traveler: Traveler): HTMLLIElement {
  const line = make('li', {}, `${traveler.name} `, make('span', {}, whereIs(traveler)))
  if (traveler.userId === userId) line.append(...createButtons(traveler))
  return line
}

/** An optimistic update shows at once, and is taken back if the server refuses it. */
function createButtons({ id, shared }: Traveler): HTMLButtonElement[] {
  const update = (changes: Parameters<typeof travelers.update>[1]) => () =>
    void travelers.optimistic.update(id, changes).catch((error) => log('refused', error.message))
  const travel = () => {
    const place = landscape[Math.floor(Math.random() * landscape.length)] as Place
    const { id: placeId, name, countryName, region, lat, lng } = place
    update({ placeId, placeName: `${name}, ${countryName}`, region, lat, lng })()
  }
  return [
    make('button', { type: 'button', onclick: travel }, 'Travel'),
    make('button', { type: 'button', onclick: update({ shared: !shared }) }, shared ? 'Hide' : 'Share'),
  ]
}

/** Logs the differences between the travelers on the page and these. Rows that have not changed are the same object. */
function logChanges(items: readonly Traveler[]): void {
  const gone = new Map(shown)
  for (const traveler of items) {
    const before = shown.get(traveler.id)
    gone.delete(traveler.id)
    if (!before) log(traveler.name, `added: ${whereIs(traveler)}`, 'added')
    else if (whereIs(before) !== whereIs(traveler)) log(traveler.name, `modified: ${whereIs(traveler)}`, 'modified')
  }
  for (const { name } of gone.values()) log(name, 'removed from this view', 'removed')
}

function log(words: string, quietWords: string, className = ''): void {
  find('log').prepend(make('li', { className }, `${words} `, make('span', {}, quietWords)))
  if (find('log').children.length > logLines) find('log').lastElementChild?.remove()
}

const whereIs = ({ placeName, shared }: Traveler): string => (shared ? placeName : `${placeName}, hidden from others`)

function showStatus(status: string, pending: number): void {
  const texts: Record<string, string> = { live: 'live', closed: 'the token is no longer valid' }
  document.body.dataset.state = status
  find('state').textContent = pending > 0 ? 'saving' : (texts[status] ?? 'connecting')
}

/** Takes the token from the URL fragment, which is in no server log; stores it for reloads and hides it. */
function takeToken(): string | null {
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given !== null) {
    sessionStorage.setItem('token', given)
    history.replaceState(null, '', location.pathname)
  }
  return sessionStorage.getItem('token')
}

/** The token's subject, unverified; the server decides what it may do. */
function ownerOf(accessToken: string): string {
  const [, payload = ''] = accessToken.split('.')
  return JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))).sub
}

if (userId) find('who').textContent = userId
let stop = watch('')
find<HTMLSelectElement>('region').onchange = ({ target }) => {
  stop()
  stop = watch((target as HTMLSelectElement).value as Region | '')
}
for await (const place of places.select('id', 'name', 'countryName', 'region', 'lat', 'lng')) landscape.push(place)
drawPlaces(landscape)
