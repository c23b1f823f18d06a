/**
 * Runs a bulk job: pages of records in order of id, each in one transaction with the effect key that names it. A page
 * that was committed before its progress was saved is therefore not repeated: its response has the position. A page
 * commits only under the fence of its claim; see `bulk-fence`.
 */
import type { ServiceCaller } from '../../../access/caller.ts'
import { permitsScope } from '../../../access/service-keys.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Sql } from '../../../engines/sql/sql.ts'
import { ApiError, unavailable } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { createCall } from '../../../http/internal-request.ts'
import { json, textOf } from '../../../http/replies/reply.ts'
import { bulkFailuresMax, bulkFailuresNamed, bulkPageRecords } from '../../../limits/dashboard.ts'
import { type BulkClaim, BulkFailure, type BulkRun, type BulkWork, LeaseLost } from '../../bulk-jobs.ts'
import type { Namespaces, TableCall, Tables } from '../resolve-table.ts'
import { findRows } from '../search/found-rows.ts'
import { writeScopeOf } from '../table-endpoint.ts'
import { type ByFilter, changeFound, findByFilter, parseByFilter } from '../writes/batch.ts'
import { toResponse } from '../writes/response.ts'
import type { RunWrite } from '../writes/write-runner.ts'
import { lockFence, pageKeyOf, raiseFence } from './bulk-fence.ts'
import type { BulkInput, BulkProgress } from './bulk-job.ts'

/** How a job has ended, for the audit log. */
export interface BulkEnd {
  readonly id: string
  readonly outcome: 'done' | 'failed'
  readonly actor: BulkInput['actor']
  readonly target: string
  readonly requestId: string
  readonly before: unknown
  readonly after: unknown
}

export interface BulkRunDeps {
  readonly tables: Pick<Tables, 'resolve'>
  readonly runWrite: RunWrite
  /** The administrator with the current role; null for one who may write no more. */
  readonly findAdministrator: (actor: BulkInput['actor']) => Promise<ServiceCaller | null>
  /** Adds the only entry of a job to the audit log; a repeated one adds nothing. */
  readonly recordEnd: (end: BulkEnd) => Promise<void>
  readonly namespaces: () => Namespaces
  readonly sql: Pick<Sql, 'database'>
  readonly clock: Clock
}

const start: BulkProgress = { page: 0, after: null, changed: 0, failed: 0, failures: [], size: bulkPageRecords }

/** What is wrong with the records of a page; anything else concerns the server. */
const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status < 500 && error.status !== 429

const describe = ({ message, data = {} }: ApiError): string => {
  const fields = Object.entries(data).map(([name, { message: problem }]) => `${name} ${problem}`)
  return fields.length === 0 ? message : `${message}: ${fields.join(', ')}`
}

interface Page {
  readonly count: number
  readonly last: string | null
}

/** A page that was refused: nothing of it is stored. */
interface RefusedPage {
  readonly ids: readonly string[]
  readonly error: ApiError
}

/** See `raiseFence`. A namespace that is not served any more has no pages under way. */
async function raise(
  { namespaces, sql, clock }: Pick<BulkRunDeps, 'namespaces' | 'sql' | 'clock'>,
  claim: BulkClaim,
  { namespace, instanceId }: BulkInput,
  page: number,
): Promise<string | null> {
  if (!namespaces().has(namespace)) return null
  const database = sql.database({ namespace, instanceId })
  return raiseFence({ database, namespace }, claim, { page, nowMs: clock.now() })
}

/** One page in its transaction. */
async function runPage(
  runWrite: RunWrite,
  claim: BulkClaim,
  call: Call,
  table: TableCall,
  selection: ByFilter,
  after: string | null,
): Promise<Page | RefusedPage> {
  const { database, address } = table
  let ids: readonly string[] = []
  try {
    const reply = await runWrite(
      call,
      table,
      () => ({ kind: 'plain' }),
      async (write) => {
        const isFenced = await lockFence(write.tx, { database, namespace: address.namespace }, claim)
        ids = await findByFilter(write, selection, after)
        // The next attempt raises the fence before its first page.
        if (!isFenced && ids.length > 0) throw unavailable(1, 'The instance was created after the attempt began')
        await changeFound(write, ids, selection)
        return toResponse(json({ count: ids.length, last: ids.at(-1) ?? null }))
      },
    )
    return JSON.parse(textOf(reply) ?? '') as Page
  } catch (error) {
    if (isRefusal(error) && ids.length > 0) return { ids, error }
    throw error
  }
}

const callOf = (run: BulkRun, { path, actor }: BulkInput, caller: ServiceCaller, page: number): Call =>
  createCall(
    {
      method: 'POST',
      target: path,
      caller,
      requestId: run.id,
      effectKey: pageKeyOf(run.id, page),
      address: actor.address,
      signal: run.signal,
    },
    { path, query: '', params: {} },
  )

export function createBulkWork(deps: BulkRunDeps): BulkWork {
  const { tables, runWrite, findAdministrator, recordEnd } = deps

  /** The table for the administrator. Throws `BulkFailure` where the job is not permitted or not possible any more. */
  async function open({ namespace, instanceId, table, actor, change }: BulkInput) {
    const caller = await findAdministrator(actor)
    if (!caller || !permitsScope(caller.scopes, writeScopeOf(table)))
      throw new BulkFailure('The administrator may not write to the table any more')
    try {
      const call = await tables.resolve({ namespace, instanceId, tableName: table }, caller)
      const { q, ...filtered } = change
      const selection = parseByFilter(call, { ...filtered, limit: undefined })
      return { call, caller, selection: { ...selection, found: q === undefined ? null : await findRows(call, q) } }
    } catch (error) {
      if (isRefusal(error)) throw new BulkFailure(describe(error))
      throw error
    }
  }

  /** Runs pages until the last one. Saves and returns the progress; null where the attempt ends early. */
  async function runPages(run: BulkRun, input: BulkInput, note: (progress: BulkProgress) => void) {
    let progress = progressOf(run)
    note(progress)
    await raise(deps, run, input, progress.page)
    for (;;) {
      const left = input.change.limit - progress.changed - progress.failed
      if (left <= 0) return 'done'
      if (run.closing.aborted) return 'interrupted'
      run.signal.throwIfAborted()
      const { call, caller, selection } = await open(input)
      const limit = Math.min(progress.size, left)
      const page = await runPage(
        runWrite,
        run,
        callOf(run, input, caller, progress.page),
        call,
        { ...selection, limit },
        progress.after,
      )
      progress = 'error' in page ? afterRefusal(progress, page) : afterPage(progress, page)
      if (progress.failed > bulkFailuresMax)
        throw new BulkFailure(`More than ${bulkFailuresMax} records were refused; the first: ${firstOf(progress)}`)
      if (!(await run.save(JSON.stringify(progress)))) throw new LeaseLost()
      note(progress)
      if ('count' in page && page.count < limit) return 'done'
    }
  }

  async function run(run: BulkRun): Promise<'done' | 'interrupted'> {
    const input = JSON.parse(run.input) as BulkInput
    let progress = start
    const note = (next: BulkProgress): void => {
      progress = next
    }
    const record = (outcome: BulkEnd['outcome'], state: string): Promise<void> =>
      recordEnd({ id: run.id, outcome, ...contentOf(input, progress, state) })
    try {
      const end = await runPages(run, input, note)
      if (end === 'done') await record('done', 'done')
      return end
    } catch (error) {
      const isLost = error instanceof LeaseLost || run.signal.aborted
      if (error instanceof BulkFailure || (run.isLast && !isLost)) await record('failed', 'failed')
      throw error
    }
  }

  return {
    run,
    async fence(claim) {
      const progress = progressOf(claim)
      const committed = await raise(deps, claim, JSON.parse(claim.input) as BulkInput, progress.page)
      return committed === null ? claim.progress : JSON.stringify(afterPage(progress, JSON.parse(committed) as Page))
    },
    recordCanceled: (claim) =>
      recordEnd({
        id: claim.id,
        outcome: 'done',
        ...contentOf(JSON.parse(claim.input) as BulkInput, progressOf(claim), 'canceled'),
      }),
  }
}

const progressOf = ({ progress }: BulkClaim): BulkProgress =>
  progress === null ? start : (JSON.parse(progress) as BulkProgress)

const firstOf = ({ failures: [first] }: BulkProgress): string => (first ? `${first.id}: ${first.message}` : '')

const afterPage = (progress: BulkProgress, { count, last }: Page): BulkProgress => ({
  ...progress,
  page: progress.page + 1,
  after: last ?? progress.after,
  changed: progress.changed + count,
  size: Math.min(bulkPageRecords, 2 * progress.size),
})

/** Halves the page until the record is alone that cannot be changed, and goes on after it. */
function afterRefusal(progress: BulkProgress, { ids, error }: RefusedPage): BulkProgress {
  const page = progress.page + 1
  const [id] = ids
  if (ids.length > 1 || id === undefined) return { ...progress, page, size: Math.ceil(ids.length / 2) }
  const { failures } = progress
  return {
    ...progress,
    page,
    after: id,
    failed: progress.failed + 1,
    failures: failures.length < bulkFailuresNamed ? [...failures, { id, message: describe(error) }] : failures,
    size: 2,
  }
}

const contentOf = (input: BulkInput, { changed, failed }: BulkProgress, state: string) => ({
  actor: input.actor,
  target: input.path,
  requestId: input.requestId,
  before: null,
  after: { ...input.audited, state, changed, failed },
})
