/** The initial data: a sample of the places of the atlas, and eight travelers of two users. */
import { readCountries } from '../atlas/countries.ts'
import { readPlaces } from '../atlas/places.ts'

/** Selects about 2,500 of 171,075 places, enough to show the shapes of the continents. */
const placesApart = 68
/** Maximum operations per batch (rule DB-BATCH-2). */
const batchRows = 500

/** A row of `places`. */
interface Place {
  readonly id: string
  readonly name: string
  readonly countryName: string
  readonly region: string
  readonly lat: number
  readonly lng: number
}

/** The fields of a traveler at a place. */
const whereabouts = ({ id, name, countryName, region, lat, lng }: Place) => ({
  placeId: id,
  placeName: `${name}, ${countryName}`,
  region,
  lat,
  lng,
})

/** Each owner has one traveler who is not shared. */
const travelers = [
  { name: 'Ada', userId: 'marie' },
  { name: 'Bo', userId: 'marie' },
  { name: 'Chi', userId: 'marie' },
  { name: 'Dora', userId: 'marie', shared: false },
  { name: 'Emil', userId: 'omar' },
  { name: 'Fay', userId: 'omar' },
  { name: 'Gus', userId: 'omar' },
  { name: 'Hal', userId: 'omar', shared: false },
] as const

function choosePlaces(): Place[] {
  const countries = new Map(readCountries().map((country) => [country.id, country]))
  const names = new Map([...countries].map(([id, { name }]) => [id, name]))
  return readPlaces(names)
    .filter((_, at) => at % placesApart === 0)
    .map(({ id, name, countryCode, countryName, lat, lng }) => {
      const region = countries.get(countryCode)?.region ?? ''
      return { id, name, countryName, region, lat, lng }
    })
}

/** Fills an empty server, and does nothing if it has travelers. Throws an Error with the message of the server. */
export async function fill(url: string, serviceKey: string): Promise<void> {
  const tables = `${url}/api/db/shared/tables`
  const headers = { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' }
  const insert = async (table: string, inserts: readonly object[]): Promise<void> => {
    const body = JSON.stringify({ inserts })
    const response = await fetch(`${tables}/${table}/batch?upsert=true`, { method: 'POST', headers, body })
    if (!response.ok) throw new Error(`${table}: ${response.status} ${await response.text()}`)
  }
  const count = await fetch(`${tables}/travelers/count`, { headers })
  const { total } = (await count.json()) as { total: number }
  if (total > 0) return
  const places = choosePlaces()
  for (let start = 0; start < places.length; start += batchRows)
    await insert('places', places.slice(start, start + batchRows))
  const apart = Math.floor(places.length / travelers.length)
  await insert(
    'travelers',
    travelers.map((traveler, at) => ({
      id: traveler.name.toLowerCase(),
      ...traveler,
      ...whereabouts(places[at * apart] as Place),
      budget: 100 * (at + 1),
    })),
  )
}
