/** What code gives to add a job to a queue, alone or within a transaction: its shape, and its checks. */
import { z } from '../../../base/schemas/z.ts'
import { parseDuration } from '../../../base/text/duration.ts'
import { parsedWith } from '../../../config/shape-parts.ts'
import { invalidField, notFound, payloadTooLarge } from '../../../errors.ts'
import { validate } from '../../../http/input/validate.ts'
import {
  functionJobDelayMaxMs,
  functionJobInputChars,
  functionJobKeyCharsMax,
  transactionJobsMax,
} from '../../../limits/function-jobs.ts'
import type { CheckedJob, CheckTransactionJobs, LoggedJob } from '../../transaction-jobs.ts'

const key = z.string().min(1).max(functionJobKeyCharsMax)
export const enqueuedSchema = z.strictObject({
  queue: z.string().min(1).max(128),
  input: z.unknown().optional(),
  delay: parsedWith(parseDuration).optional().meta({ description: 'Such as `30s`, `15m`, `12h` or `7d`' }),
  at: z.iso.datetime({ offset: true }).optional().meta({ description: 'When the job is due' }),
  key: key.optional().meta({ description: 'Jobs with one key run one after the other' }),
  uniqueKey: key.optional().meta({ description: 'One unfinished job has it; another one is not added' }),
})

/** When the job is due. Throws 400 for both or a time that is too far away. */
function dueMs({ delay, at }: z.output<typeof enqueuedSchema>, nowMs: number): number {
  if (delay !== undefined && at !== undefined) throw invalidField('at', 'type', 'cannot be combined with delay')
  const atMs = at === undefined ? nowMs + (delay ?? 0) : Date.parse(at)
  if (atMs - nowMs > functionJobDelayMaxMs)
    throw invalidField(at === undefined ? 'delay' : 'at', 'max', 'must be at most 366 days away')
  return atMs
}

/** What is known of queues. */
interface Queues {
  /** The function that a queue's name, or its own, stands for. */
  findFunction(name: string): { readonly name: string; readonly queue: string | null } | null
  /** Throws 503 while there are too many jobs. */
  requireRoom(): Promise<unknown>
}

/** The job. Throws 404 for another name than that of a queue, 413 for too large an input and 400 for its time. */
export function checkEnqueued(
  queues: Pick<Queues, 'findFunction'>,
  body: z.output<typeof enqueuedSchema>,
  nowMs: number,
): LoggedJob {
  const { queue, input = null, key: ownKey = null, uniqueKey = null } = body
  const declared = queues.findFunction(queue)
  if (declared?.queue !== queue) throw notFound('Queue')
  if (JSON.stringify(input).length > functionJobInputChars) throw payloadTooLarge(functionJobInputChars, 'input')
  return { function: declared.name, input, runAtMs: dueMs(body, nowMs), key: ownKey, uniqueKey }
}

/** `id` is chosen by the host: the function has it before the transaction is committed. */
const transactionSchema = z.strictObject({
  jobs: z.array(enqueuedSchema.extend({ id: z.string().regex(/^[0-9a-f-]{32,36}$/) })).max(transactionJobsMax),
})

/** Checks the jobs that a function adds within a transaction. */
export const createTransactionJobs =
  (queues: Queues, nowMs: () => number): CheckTransactionJobs =>
  async (given) => {
    const { jobs } = validate(transactionSchema, { jobs: given })
    const checked = jobs.map(({ id, ...body }): CheckedJob => ({ id, job: checkEnqueued(queues, body, nowMs()) }))
    await queues.requireRoom()
    return checked
  }
