/** A view or a record as code: for the client, for curl, and as a filter. */
import { quoted } from '../../../text/shell-argument.ts'
import type { TableAddress } from '../location.ts'
import { apiPath } from '../location.ts'
import { parametersOf, parseSortOrder, type RowQuery } from '../rows/row-query.ts'

const isName = (text: string): boolean => /^[A-Za-z_$][\w$]*$/.test(text)
const literal = (value: unknown): string => JSON.stringify(value)

/** `plinth.db('shared').posts` */
export function clientTable({ namespace, instanceId, table }: TableAddress): string {
  const database = [namespace, instanceId].filter((part) => part !== null).map(literal)
  return `plinth.db(${database.join(', ')})${isName(table) ? `.${table}` : `.table(${literal(table)})`}`
}

export function clientList(address: TableAddress, { filter, sort, words }: RowQuery): string {
  const order = parseSortOrder(sort)
  const steps = [
    ...filter.map(([field, operator, value]) => `.where(${literal(field)}, ${literal(operator)}, ${literal(value)})`),
    ...(words === null ? [] : [`.search(${literal(words)})`]),
    ...(order === null || words !== null ? [] : [`.sort(${literal(order.field)}, ${literal(order.direction)})`]),
    '.limit(50)',
    '.list()',
  ]
  return `const { items } = await ${clientTable(address)}\n${steps.map((step) => `  ${step}`).join('\n')}`
}

const keyHeader = '-H "X-Platform-Service-Key: $SERVICE_KEY"'

export function curlList(address: TableAddress, query: RowQuery, origin: string): string {
  const parameters = Object.entries({ ...parametersOf(query), limit: '50' })
  const path = `${origin}${apiPath(address)}${query.words === null ? '' : '/search'}`
  return [
    `curl -s -G ${quoted(path)} ${keyHeader}`,
    ...parameters.map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)}`),
  ].join(' \\\n')
}

export const clientGet = (address: TableAddress, id: string): string =>
  `const record = await ${clientTable(address)}.get(${literal(id)})`

export const curlGet = (address: TableAddress, id: string, origin: string): string =>
  `curl -s ${quoted(`${origin}${apiPath(address)}/${encodeURIComponent(id)}`)} ${keyHeader}`

export const clientInsert = (address: TableAddress, values: Readonly<Record<string, unknown>>): string =>
  `const record = await ${clientTable(address)}.insert(${JSON.stringify(values, null, 2)})`

export const clientLive = (address: TableAddress): string =>
  `const list = ${clientTable(address)}.limit(50).live()\nlist.subscribe(() => render(list.current.items))`
