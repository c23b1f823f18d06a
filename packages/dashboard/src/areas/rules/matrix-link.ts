/** From a cell of the matrix to the question in the playground that is about it. */
import { type Draft, draftOf, paramsOf } from './question.ts'
import type { MatrixCaller, MatrixOperation, MatrixTable } from './requests.ts'

const ids: Readonly<Record<Exclude<MatrixCaller, 'anonymous'>, string>> = {
  user: 'some-user',
  owner: 'owner',
  otherUser: 'other-user',
  otherTenant: 'user-of-other-tenant',
}

/** The fields of a record that a condition compares with the id of the caller. */
function ownerFields(condition: string): readonly string[] {
  // Those inside of `exists` are of another table.
  const names = [...condition.replace(/exists\([^()]*\)/g, '').matchAll(/(\w+) == auth\.id\b/g)].map(
    ([, name]) => name as string,
  )
  return [...new Set(names)]
}

/** The path of the playground with the caller, the table, the operation, and for an owner a record that it owns. */
export function playgroundPath(
  { namespace, name, operations }: MatrixTable,
  cell: { readonly operation: MatrixOperation; readonly caller: MatrixCaller },
): string {
  const condition = operations[cell.operation].user.condition ?? ''
  const owned = cell.caller === 'owner' ? ownerFields(condition) : []
  const draft: Draft = {
    ...draftOf(() => null),
    namespace: namespace ?? '',
    table: name,
    operation: cell.operation === 'read' ? (owned.length > 0 ? 'get' : 'list') : cell.operation,
    ...(cell.caller !== 'anonymous' && { caller: 'claims', claims: JSON.stringify({ id: ids[cell.caller] }) }),
    ...(owned.length > 0 && {
      source: 'row',
      row: JSON.stringify(Object.fromEntries(owned.map((field) => [field, ids.owner]))),
    }),
  }
  const params = Object.entries(paramsOf(draft)).filter((entry): entry is [string, string] => entry[1] !== null)
  return `/rules?${new URLSearchParams(params).toString()}`
}
