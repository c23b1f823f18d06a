/** Aggregates of plain rows, written independently of the server: what property tests compare its answers with. */
import { compare, matchesTuple, type Row, type Tuple, type Value } from './filter-oracle.ts'

export type Key =
  | string
  | { readonly bucket: string; readonly width: number; readonly as: string }
  | { readonly [period: string]: string }
export type Measure = 'count' | { readonly [kind: string]: string }

export interface Aggregate {
  readonly group?: readonly Key[] | undefined
  readonly measures: { readonly [name: string]: Measure }
  readonly having?: readonly Tuple[] | undefined
  readonly sort?: readonly (readonly [name: string, descending: boolean])[] | undefined
  readonly limit: number
}

const periods = ['hour', 'day', 'week', 'month', 'year'] as const
const formats = new Map<string, Intl.DateTimeFormat>()

/** The local time of an instant as `2026-01-31T13`, from the runtime's formatter. */
function localHour(datetime: string, timeZone: string): string {
  if (datetime < '1900' || datetime >= '2200') return datetime.slice(0, 13)
  let format = formats.get(timeZone)
  if (!format) {
    const parts = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', hourCycle: 'h23' } as const
    format = new Intl.DateTimeFormat('en-US', { timeZone, ...parts })
    formats.set(timeZone, format)
  }
  const parts = Object.fromEntries(format.formatToParts(new Date(datetime)).map(({ type, value }) => [type, value]))
  return `${parts.year}-${parts.month}-${parts.day}T${parts.hour}`
}

/** The Monday on or before a day; the first of the year 1 for earlier ones. */
function mondayOf(day: string): string {
  if (day < '0001-01-08') return '0001-01-01'
  const date = new Date(`${day}T00:00:00.000Z`)
  date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  return date.toISOString().slice(0, 10)
}

function bucketOf(value: Value, width: number): Value {
  if (typeof value !== 'number') return null
  if (Math.abs(value) > width * 2 ** 53) return value
  if (value < 0 && value >= -width) return -width
  return value >= 0 && value < width ? 0 : Math.floor(value / width) * width
}

/** The name and the value of a key in the group of a row. */
function keyOf(key: Key, row: Row): readonly [string, Value] {
  if (typeof key === 'string') return [key, row[key] ?? null]
  const { bucket, width, tz = 'UTC', as } = key as { bucket?: string; width?: number; tz?: string; as?: string }
  if (bucket !== undefined) return [as ?? bucket, bucketOf(row[bucket] ?? null, width ?? 1)]
  const period = periods.find((one) => one in key) ?? 'day'
  const field = (key as Record<string, string>)[period] ?? ''
  const datetime = row[field]
  if (typeof datetime !== 'string') return [as ?? field, null]
  const hour = localHour(datetime, tz)
  const length = { hour: 13, day: 10, week: 10, month: 7, year: 4 }[period]
  return [as ?? field, period === 'week' ? mondayOf(hour.slice(0, 10)) : hour.slice(0, length)]
}

/** `typed`: whether sums, buckets and orders are over numbers alone, as for fields without a declared type. */
function measureOf(measure: Measure, rows: readonly Row[], typed: boolean): Value {
  if (measure === 'count') return rows.length
  const [[kind, field]] = Object.entries(measure) as [[string, string]]
  const all = rows.map((row) => row[field] ?? null).filter((value) => value !== null)
  if (kind === 'countDistinct') return new Set(all).size
  const values = typed ? all : all.filter((value) => typeof value === 'number')
  const sum = values.reduce<number>((total, value) => total + Number(value), 0)
  if (kind === 'sum') return sum
  if (values.length === 0) return null
  if (kind === 'avg') return sum / values.length
  const sorted = values.toSorted(compare)
  return (kind === 'min' ? sorted[0] : sorted.at(-1)) ?? null
}

/** Null, false, true, numbers, text. */
const rankOf = (value: Value): number =>
  value === null ? 0 : typeof value === 'boolean' ? 1 : typeof value === 'number' ? 2 : 3

const orderOf = (a: Value, b: Value): number => (rankOf(a) === rankOf(b) ? compare(a, b) : rankOf(a) - rankOf(b))

/** A condition on a group; values of different types are different, and have no order. */
function permits(tuple: Tuple, group: Row): boolean {
  const [name, , value] = tuple
  const own = group[name] ?? null
  const isComparable = value === null || Array.isArray(value) || own === null || typeof own === typeof value
  return isComparable && matchesTuple(tuple, group)
}

/** The response to an aggregate over rows. */
export function aggregateOf(
  rows: readonly Row[],
  { group = [], measures, having = [], sort = [], limit }: Aggregate,
  typed: boolean,
): { groups: readonly Row[]; truncated: boolean } {
  const byKey = new Map<string, { readonly keys: Row; readonly rows: Row[] }>()
  if (group.length === 0) byKey.set('', { keys: {}, rows: [] })
  for (const row of rows) {
    const keys = Object.fromEntries(group.map((key) => keyOf(key, row)))
    const id = group.length === 0 ? '' : JSON.stringify(keys)
    const found = byKey.get(id) ?? { keys, rows: [] }
    byKey.set(id, found)
    found.rows.push(row)
  }
  const names = group.map((key) => keyOf(key, {})[0])
  const order = [...sort, ...names.map((name) => [name, false] as const)]
  const groups = [...byKey.values()]
    .map(({ keys, rows: members }): Row => {
      const measured = Object.entries(measures).map(([name, measure]) => [name, measureOf(measure, members, typed)])
      return { ...keys, ...Object.fromEntries(measured) }
    })
    .filter((one) => having.every((tuple) => permits(tuple, one)))
    .toSorted((a, b) => {
      for (const [name, descending] of order) {
        const found = orderOf(a[name] ?? null, b[name] ?? null)
        if (found !== 0) return descending ? -found : found
      }
      return 0
    })
  return { groups: groups.slice(0, limit), truncated: groups.length > limit }
}
