/** Writes of records: each with the version that was shown, so that no change of another administrator is lost. */
import { isPlinthError, versionOf } from 'plinth-client'
import { api, client } from '../../../app/transport.ts'
import { apiPath, type TableAddress } from '../location.ts'
import { type Row, rowOf } from '../rows/row.ts'

export type Values = Readonly<Record<string, unknown>>

/** What a write needs of a table of the client. */
interface RecordTable {
  get(id: string): Promise<Values>
  insert(values: Values): Promise<Values>
  update(id: string, values: Values, options: { readonly ifMatch: string }): Promise<Values>
  delete(id: string, options?: { readonly ifMatch: string }): Promise<void>
}

function tableOf({ namespace, instanceId, table }: TableAddress): RecordTable {
  const db = client.db as (namespace: string, instance?: string) => { table(name: string): RecordTable }
  return (instanceId === null ? db(namespace) : db(namespace, instanceId)).table(table)
}

const withVersion = (record: Values): Row => rowOf(record, versionOf(record))

/** Another version is stored than the one that was changed. */
export class Conflict extends Error {
  /** What is stored; null if the record was deleted. */
  readonly stored: Row | null

  constructor(stored: Row | null) {
    super(stored === null ? 'The record has been deleted meanwhile.' : 'The record has changed meanwhile.')
    this.stored = stored
  }
}

async function findRecord(address: TableAddress, id: string): Promise<Row | null> {
  try {
    return await getRecord(address, id)
  } catch (error) {
    if (isPlinthError(error, 'not-found')) return null
    throw error
  }
}

/** Reads a record with all fields in full length. */
export const getRecord = async (address: TableAddress, id: string): Promise<Row> =>
  withVersion(await tableOf(address).get(id))

/** Changes the given fields. Rejects with `Conflict` if the record has another version by now. */
export async function updateRecord(
  address: TableAddress,
  row: Pick<Row, 'id' | 'version'>,
  values: Values,
): Promise<Row> {
  try {
    return withVersion(await tableOf(address).update(row.id, values, { ifMatch: row.version }))
  } catch (error) {
    if (isPlinthError(error, 'precondition-failed') || isPlinthError(error, 'not-found'))
      throw new Conflict(await findRecord(address, row.id))
    throw error
  }
}

export const insertRecord = async (address: TableAddress, values: Values): Promise<Row> =>
  withVersion(await tableOf(address).insert(values))

/** Records that one request deletes. */
const deletesPerRequest = 500

/** Deletes records by their ids, all of each 500 or none. */
export async function deleteRecords(address: TableAddress, ids: readonly string[]): Promise<void> {
  if (ids.length === 1) return tableOf(address).delete(ids[0] as string)
  for (let at = 0; at < ids.length; at += deletesPerRequest)
    await api.post(`${apiPath(address)}/batch`, { body: { deletes: ids.slice(at, at + deletesPerRequest) } })
}
