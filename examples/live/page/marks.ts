/** The drawing: a dot for every place, which together form the continents, and a mark for every traveler. */
import { createSvg, find } from '../../page-dom.ts'

interface Position {
  readonly lat: number
  readonly lng: number
}

const northUp = (lat: number): number => -lat

export function drawPlaces(places: readonly Position[]): void {
  const dots = places.map(({ lat, lng }) => `M${lng} ${northUp(lat)}h0`)
  find('land').setAttribute('d', dots.join(''))
}

/** Adds the mark of a traveler to the map. */
export function createMark(id: string): SVGGElement {
  const mark = createSvg(
    'g',
    { 'data-traveler': id },
    createSvg('circle', { r: 2.2 }),
    createSvg('text', { x: 3.4, y: 1.7 }),
  )
  find('travelers').append(mark)
  return mark
}

export function moveMark(
  mark: SVGGElement,
  { name, placeId, shared, lat, lng }: Position & { name: string; placeId: string; shared: boolean },
): void {
  mark.setAttribute('class', shared ? 'traveler' : 'traveler hidden')
  mark.dataset.place = placeId
  mark.style.transform = `translate(${lng}px, ${northUp(lat)}px)`
  if (mark.lastElementChild) mark.lastElementChild.textContent = name
}
