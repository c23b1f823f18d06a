/**
 * What an operation on a record would be answered, without doing it: the functions of the endpoints run on a
 * transaction that writes nothing. Functions of the application do not run.
 */
import { required } from '../../../access/check.ts'
import { notFound } from '../../../errors.ts'
import type { ResponseLimits } from '../../../http/replies/large-responses.ts'
import type { CompleteRow } from '../../../query/computed/computed-fields.ts'
import { rehearsalOf } from '../../write-rehearsal.ts'
import { list } from '../reads/list.ts'
import { get } from '../reads/read.ts'
import type { TableCall } from '../resolve-table.ts'
import type { Totals } from '../totals/totals.ts'
import type { VersionedRow } from '../version.ts'
import { isRecordId, type Patch } from '../writes/input.ts'
import { insertRecord } from '../writes/insert.ts'
import { deleteRecord, rowSatisfies, updateRecord } from '../writes/write.ts'
import type { Write } from '../writes/write-context.ts'

export interface RehearsalDeps {
  readonly totals: Totals
  readonly limits: ResponseLimits
}

/** A record that stands for a stored one. */
export interface StandIn {
  readonly id: string
  readonly row: VersionedRow
}

/** A write that changes nothing; the record that it is about is the given one. */
export const rehearsedWrite = (call: TableCall, nowMs: number, standIn: StandIn | null): Write => ({
  call,
  tx: rehearsalOf(call.database),
  committed() {},
  removals: { raise() {}, areBelow: async () => true },
  requestId: '',
  nowMs,
  at: '',
  hooks: null,
  isRehearsal: true,
  logged: { chars: 0 },
  ...(standIn && { locked: new Map([[standIn.id, standIn.row]]) }),
})

/** The stored record with all fields, without regard to rules; null if there is none. */
export async function findStored({ rows, database }: TableCall, id: string): Promise<StandIn | null> {
  if (!isRecordId(id)) return null
  const [row] = await database.all<Record<string, unknown>>(rows.selectById(id))
  return row ? { id, row: rows.versionedFromSql(row) } : null
}

/** Lists as the endpoint does, from the start; throws as it does. */
export async function rehearseList(
  call: TableCall,
  query: { readonly filter?: string; readonly sort?: string },
  deps: RehearsalDeps,
): Promise<void> {
  await list(call, { ...query, limit: 1, after: '' }, deps)
}

/** Reads a stored record, or one that is not stored. Throws as the endpoint does. */
export async function rehearseGet(
  call: TableCall,
  subject: { readonly id: string; readonly pasted: StandIn | null },
  { deps, nowMs }: { readonly deps: RehearsalDeps; readonly nowMs: number },
): Promise<void> {
  const { id, pasted } = subject
  if (!pasted) return void (await get(call, id, {}, deps.limits))
  const allowed = required(call.permissions.read(), call.caller)
  if (!(await rowSatisfies(rehearsedWrite(call, nowMs, pasted), allowed, pasted.row.row))) throw notFound('Record')
}

/** `parse` returns the record of the body; it throws once the rule permits any record. */
export async function rehearseInsert(call: TableCall, parse: () => CompleteRow, nowMs: number): Promise<void> {
  required(call.permissions.insert(), call.caller)
  await insertRecord(rehearsedWrite(call, nowMs, null), { row: parse(), hasOwnId: false })
}

/** `standIn` is the stored record or another in its place; null where there is none. */
export async function rehearseUpdate(
  call: TableCall,
  subject: { readonly id: string; readonly standIn: StandIn | null; readonly patch: () => Patch },
  nowMs: number,
): Promise<void> {
  required(call.permissions.updateBefore(), call.caller)
  await updateRecord(rehearsedWrite(call, nowMs, subject.standIn), subject.id, subject.patch())
}

export async function rehearseDelete(
  call: TableCall,
  subject: { readonly id: string; readonly standIn: StandIn | null },
  nowMs: number,
): Promise<void> {
  required(call.permissions.delete(), call.caller)
  await deleteRecord(rehearsedWrite(call, nowMs, subject.standIn), subject.id)
}
