/** Converts the package `world-countries` to rows of the `countries` table, which `import.ts` sends. */
import worldCountries, { type Country } from 'world-countries'

export interface CountryRow {
  /** ISO 3166-1 alpha-2, `IS`; referenced by `places.countryCode`. */
  readonly id: string
  /** ISO 3166-1 alpha-3, `ISL`. */
  readonly iso3: string
  readonly name: string
  readonly officialName: string
  readonly region: string
  readonly subregion: string | null
  readonly capital: string | null
  /** Square kilometers; null where the package has none. */
  readonly area: number | null
  readonly landlocked: boolean
  readonly flag: string
  readonly lat: number
  readonly lng: number
  /** Ids of the neighboring countries. */
  readonly borders: readonly string[]
  /** Language code to its English name. */
  readonly languages: Readonly<Record<string, string>>
  readonly currencies: readonly string[]
}

/** Returns every country of the package, sorted by id. */
export function readCountries(): CountryRow[] {
  const alpha2 = new Map(worldCountries.map((country) => [country.cca3, country.cca2]))
  return worldCountries.map((country) => toRow(country, alpha2)).sort((a, b) => (a.id < b.id ? -1 : 1))
}

function toRow(country: Country, alpha2: ReadonlyMap<string, string>): CountryRow {
  const [lat, lng] = country.latlng
  return {
    id: country.cca2,
    iso3: country.cca3,
    name: country.name.common,
    officialName: country.name.official,
    region: country.region,
    subregion: country.subregion || null,
    capital: country.capital[0] ?? null,
    area: country.area > 0 ? country.area : null,
    landlocked: country.landlocked,
    flag: country.flag,
    lat,
    lng,
    borders: country.borders.map((code) => alpha2.get(code) ?? code),
    languages: country.languages,
    currencies: Object.keys(country.currencies),
  }
}
