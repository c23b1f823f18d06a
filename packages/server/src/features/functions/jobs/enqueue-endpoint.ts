/** The endpoint that adds a job to a queue, which `ctx.enqueue` calls. */
import { z } from 'zod'
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { parseDuration } from '../../../base/text/duration.ts'
import { parsedWith } from '../../../config/shape-parts.ts'
import { invalidField, notFound, payloadTooLarge } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { functionJobDelayMaxMs, functionJobInputChars, functionJobKeyCharsMax } from '../../../limits/function-jobs.ts'
import type { Background } from '../background.ts'
import { causeOf } from '../dispatch/cause.ts'
import { jobsCommon } from './job-endpoints.ts'

export interface EnqueueDeps {
  readonly background: Background
  readonly clock: Clock
}

const key = z.string().min(1).max(functionJobKeyCharsMax)
const bodySchema = z.strictObject({
  queue: z.string().min(1).max(128),
  input: z.unknown().optional(),
  delay: parsedWith(parseDuration).optional().meta({ description: 'Such as `30s`, `15m`, `12h` or `7d`' }),
  at: z.iso.datetime({ offset: true }).optional().meta({ description: 'When the job is due' }),
  key: key.optional().meta({ description: 'Jobs with one key run one after the other' }),
  uniqueKey: key.optional().meta({ description: 'One unfinished job has it; another one is not added' }),
})

/** When the job is due. Throws 400 for both or a time that is too far away. */
function dueMs({ delay, at }: z.output<typeof bodySchema>, nowMs: number): number {
  if (delay !== undefined && at !== undefined) throw invalidField('at', 'type', 'cannot be combined with delay')
  const atMs = at === undefined ? nowMs + (delay ?? 0) : Date.parse(at)
  if (atMs - nowMs > functionJobDelayMaxMs)
    throw invalidField(at === undefined ? 'delay' : 'at', 'max', 'must be at most 366 days away')
  return atMs
}

export function createEnqueueEndpoint({ background, clock }: EnqueueDeps): Endpoint {
  const newId = createUuid7(clock)
  /** A repeated attempt of a job adds no second job. */
  const idOf = ({ effectKey }: Call): string => (effectKey === undefined ? newId() : sha256(effectKey).slice(0, 32))
  return endpoint({
    ...jobsCommon,
    name: 'functions.enqueue',
    method: 'POST',
    paths: ['/api/functions/jobs'],
    summary: 'Add a job to a queue',
    body: bodySchema,
    replies: {
      201: {
        description: 'The job, or the unfinished one with its unique key',
        schema: z.object({ jobId: z.string() }),
      },
    },
    errors: [404, 413, 503],
    async handle(call) {
      const { body } = call
      const declared = background.findFunction(body.queue)
      if (declared?.queue !== body.queue) throw notFound('Queue')
      const input = JSON.stringify(body.input ?? null)
      if (input.length > functionJobInputChars) throw payloadTooLarge(functionJobInputChars, 'input')
      const { id } = await background.enqueue({
        id: idOf(call),
        function: declared.name,
        kind: 'queue',
        key: body.key ?? null,
        uniqueKey: body.uniqueKey ?? null,
        input,
        runAtMs: dueMs(body, clock.now()),
        depth: (causeOf(call.requestId)?.depth ?? 0) + 1,
      })
      return json({ jobId: id }, 201)
    },
  })
}
