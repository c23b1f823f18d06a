/** Draws the state of the room. Names are user input: they are set as text, never as markup. */
import { createSvg, find, make } from '../../page-dom.ts'
import type { Arena } from '../game.ts'

const phaseTexts = { waiting: 'Waiting', playing: 'This round ends in', break: 'The next round starts in' }

const colorOf = ({ hue }: { readonly hue: number }): string => `hsl(${hue} 75% 62%)`

export function drawWalls({ field }: Arena): void {
  const walls = field.flatMap((row, y) => [...row].flatMap((cell, x) => (cell === '#' ? [{ x, y }] : [])))
  find('walls').replaceChildren(...walls.map((place) => createSvg('rect', { ...place, width: 1, height: 1 })))
}

/** Reconciles the children of `parent` with `items` by key: `create` makes new elements, `update` changes all. */
function draw<Item extends { readonly x: number; readonly y: number }>(
  parent: HTMLElement,
  items: Readonly<Record<string, Item>>,
  create: () => SVGElement,
  update: (mark: SVGElement, item: Item, key: string) => void,
): void {
  const marks = new Map([...parent.querySelectorAll<SVGElement>('[data-key]')].map((mark) => [mark.dataset.key, mark]))
  for (const [key, item] of Object.entries(items)) {
    const mark = marks.get(key) ?? create()
    if (!marks.delete(key)) parent.append(mark)
    mark.dataset.key = key
    update(mark, item, key)
    mark.dataset.at = `${item.x},${item.y}`
    mark.style.transform = `translate(${item.x}px, ${item.y}px)`
  }
  for (const mark of marks.values()) mark.remove()
}

/** `away` contains the players whose window is hidden. */
export function drawPlayers({ players }: Arena, me: string, away: ReadonlySet<string>): void {
  draw(
    find('players'),
    players,
    () =>
      createSvg('g', {}, createSvg('circle', { cx: 0.5, cy: 0.5, r: 0.42 }), createSvg('text', { x: 0.5, y: -0.12 })),
    (mark, player, id) => {
      mark.setAttribute('class', ['player', id === me && 'own', away.has(id) && 'away'].filter(Boolean).join(' '))
      const [circle, text] = mark.children as unknown as [SVGElement, SVGElement]
      circle.style.fill = colorOf(player)
      text.textContent = player.name
      // A name above the top row would be clipped.
      text.setAttribute('y', player.y === 0 ? '1.35' : '-0.12')
    },
  )
}

export function drawGems({ gems }: Arena): void {
  const shape = { x: -0.22, y: -0.22, width: 0.44, height: 0.44, rx: 0.06, transform: 'translate(.5 .5) rotate(45)' }
  draw(
    find('gems'),
    gems,
    () => createSvg('g', {}, createSvg('rect', shape)),
    (mark, { value }) => mark.setAttribute('class', value > 1 ? 'gem precious' : 'gem'),
  )
}

export function drawScores({ players, winner }: Arena, me: string, away: ReadonlySet<string>): void {
  const sorted = Object.entries(players).sort(([, a], [, b]) => b.score - a.score || (a.name < b.name ? -1 : 1))
  find('scores').replaceChildren(
    ...sorted.map(([id, player]) => {
      const name = away.has(id) ? `${player.name}, away` : player.name
      const item = make('li', { className: id === me ? 'own' : '' }, name, make('span', {}, String(player.score)))
      item.style.setProperty('--color', colorOf(player))
      return item
    }),
  )
  find('winner').textContent = winner?.names.length ? `${winner.names.join(' and ')}, with ${winner.score}` : '—'
}

/** `nowMs` is the server's time. */
export function drawClock({ phase, round, endsAtMs }: Arena, nowMs: number): void {
  find('phase').textContent = phaseTexts[phase]
  find('seconds').textContent = phase === 'waiting' ? '' : String(Math.max(0, Math.ceil((endsAtMs - nowMs) / 1000)))
  document.body.dataset.round = String(round)
}

export function drawTaken({ x, y, value }: { readonly x: number; readonly y: number; readonly value: number }): void {
  const pop = createSvg('text', { class: value > 1 ? 'pop precious' : 'pop', x: x + 0.5, y: y + 0.3 }, `+${value}`)
  pop.addEventListener('animationend', () => pop.remove())
  find('pops').append(pop)
}
