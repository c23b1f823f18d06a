/**
 * Runs the operations of a transaction in order, on several tables of a namespace. The first error rolls back all of
 * them. `transaction-locks` makes its checks hold until the commit, so that transactions are serializable.
 */
import { createSlices } from '../../../../base/concurrency/slices.ts'
import { jsonText } from '../../../../http/replies/reply.ts'
import type { CheckedJob } from '../../../transaction-jobs.ts'
import { hasSameRecords } from '../../reads/list-check.ts'
import type { TableCall } from '../../resolve-table.ts'
import { insertRecords } from '../insert.ts'
import type { ResponseShape } from '../replay.ts'
import {
  createRecordsResponse,
  type RecordsResponse,
  type Shown,
  visibleRemovals,
  type WriteResponse,
  type Written,
} from '../response.ts'
import { upsertRecords } from '../upsert.ts'
import { deleteRecord, holds, updateRecord } from '../write.ts'
import type { Write } from '../write-context.ts'
import { conditionFailed, named, type Operation, sentOf } from './transaction-input.ts'
import { appendJobs } from './transaction-jobs.ts'
import { lockOperations } from './transaction-locks.ts'

export interface TransactionOptions {
  /** Bound of the response. */
  readonly bytesMax: number
  /** Whether the response has the versions of its records. */
  readonly showsVersions: boolean
  /** Added with the changes. */
  readonly jobs: readonly CheckedJob[]
}

/** The result of an operation that is not a record. */
interface PlainResult {
  readonly text: string
  readonly version: number | null
}

const checked: PlainResult = { text: '{"ok":true}', version: null }

type KindOf<Kind> = Extract<Operation, { kind: Kind }>

const isPlain = (result: Written | PlainResult): result is PlainResult => !('row' in result)

/** Whether two operations in sequence can share statements. */
function canShare(one: Operation, other: Operation): boolean {
  if (one.call !== other.call) return false
  if (one.kind === 'upsert' && other.kind === 'upsert') return one.upsert.conflictTarget === other.upsert.conflictTarget
  return one.kind === 'insert' && other.kind === 'insert'
}

function groupsOf(operations: readonly Operation[]): Operation[][] {
  const groups: Operation[][] = []
  for (const one of operations) {
    const group = groups.at(-1)
    if (group?.[0] && canShare(group[0], one)) group.push(one)
    else groups.push([one])
  }
  return groups
}

async function insertGroup(write: Write, group: readonly KindOf<'insert'>[]): Promise<Written[]> {
  const records = group.map(({ record }) => record)
  const stored = await insertRecords(write, records, (index) => group[index]?.at ?? '')
  return stored.map((one, index) => ({ ...one, sent: group[index]?.sent ?? [] }))
}

async function upsertGroup(write: Write, group: readonly KindOf<'upsert'>[]): Promise<Written[]> {
  const upserts = group.map(({ upsert }) => upsert)
  const written = await upsertRecords(write, upserts, (index) => group[index]?.at ?? '')
  // As in a batch, the result is the record alone.
  return written.map(({ action: _, ...record }) => record)
}

async function runOne(
  write: Write,
  one: KindOf<'update' | 'delete' | 'check' | 'checkList'>,
): Promise<readonly (Written | PlainResult)[]> {
  switch (one.kind) {
    case 'update':
      return [{ ...(await updateRecord(write, one.id, one.patch, one.ifMatch)), sent: sentOf(one) }]
    case 'delete': {
      const [version = null] = visibleRemovals(write.call, [await deleteRecord(write, one.id, one.ifMatch)])
      return [{ text: JSON.stringify({ id: one.id }), version }]
    }
    case 'check':
      if (!(await holds(write, one.id, one.expected)))
        throw conditionFailed(one.at, 'A record has changed since it was read')
      return [checked]
    case 'checkList':
      if (!(await hasSameRecords(write.call, write.tx, one.list)))
        throw conditionFailed(one.at, 'A list has changed since it was read')
      return [checked]
  }
}

/** Runs operations that share statements, or one. */
function runGroup(write: Write, group: readonly Operation[]): Promise<readonly (Written | PlainResult)[]> {
  const [first] = group as [Operation]
  if (first.kind === 'insert') return insertGroup(write, group as KindOf<'insert'>[])
  if (first.kind === 'upsert') return upsertGroup(write, group as KindOf<'upsert'>[])
  return runOne(write, first)
}

/** Throws what the operations throw, each error with the path of its operation, and 413 for too large a response. */
export async function runTransaction(
  outer: Write,
  operations: readonly Operation[],
  { bytesMax, showsVersions, jobs }: TransactionOptions,
): Promise<WriteResponse> {
  const writes = await lockOperations(outer, operations)
  const budget = { bytesMax, bytes: 0 }
  const responses = new Map<TableCall, RecordsResponse>()
  for (const [call, write] of writes) responses.set(call, createRecordsResponse(write, budget))
  /** Per operation its result, or the table of the record that is its result. */
  const results: (PlainResult | TableCall)[] = []
  const next = createSlices()
  for (const group of groupsOf(operations)) {
    const [{ call, at }] = group as [Operation]
    const write: Write = { ...(writes.get(call) as Write), at }
    const run = () => runGroup(write, group)
    for (const result of await (group.length === 1 ? named(at, run) : run())) {
      if (!isPlain(result)) responses.get(call)?.add(result)
      results.push(isPlain(result) ? result : call)
    }
    const pause = next()
    if (pause) await pause
  }
  appendJobs(outer, jobs)
  const shown = new Map<TableCall, Iterator<Shown>>()
  for (const [call, response] of responses) shown.set(call, (await response.finish()).values())
  return respond(
    results.map((one) => ('text' in one ? one : (shown.get(one)?.next().value as Shown))),
    showsVersions,
  )
}

function respond(results: readonly (PlainResult | Shown)[], showsVersions: boolean): WriteResponse {
  const versions = showsVersions ? `,"versions":${JSON.stringify(results.map(({ version }) => version))}` : ''
  const brief = (one: PlainResult | Shown): string => ('id' in one ? JSON.stringify({ id: one.id }) : one.text)
  return {
    reply: jsonText(`{"results":[${results.map(({ text }) => text).join(',')}]${versions}}`),
    brief: () => `{"abridged":true,"results":[${results.map(brief).join(',')}]}`,
  }
}

/** The records that the response contains. */
export const transactionShape = (operations: readonly Operation[]): ResponseShape => ({
  kind: 'transaction',
  operations: operations.map((one) => ({ call: one.call, sent: sentOf(one) })),
})
