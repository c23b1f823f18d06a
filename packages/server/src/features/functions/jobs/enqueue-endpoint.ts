/** The endpoint that adds a job to a queue, which `ctx.enqueue` calls. */

import type { Clock } from '../../../base/clock.ts'
import { z } from '../../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import type { Background } from '../background.ts'
import { causeOf } from '../dispatch/cause.ts'
import { checkEnqueued, enqueuedSchema } from './enqueued-input.ts'
import { jobsCommon } from './job-endpoints.ts'
import { createJobIds } from './job-ids.ts'

export interface EnqueueDeps {
  readonly background: Background
  readonly clock: Clock
}

export function createEnqueueEndpoint({ background, clock }: EnqueueDeps): Endpoint {
  const idOf = createJobIds(clock)
  return endpoint({
    ...jobsCommon,
    name: 'functions.enqueue',
    method: 'POST',
    paths: ['/api/functions/jobs'],
    summary: 'Add a job to a queue',
    body: enqueuedSchema,
    replies: {
      201: {
        description: 'The job, or the unfinished one with its unique key',
        schema: z.object({ jobId: z.string() }),
      },
    },
    errors: [404, 413, 503],
    async handle(call) {
      const { input, ...job } = checkEnqueued(background, call.body, clock.now())
      const { id } = await background.enqueue({
        ...job,
        id: idOf(call.effectKey),
        kind: 'queue',
        input: JSON.stringify(input),
        depth: (causeOf(call.requestId)?.depth ?? 0) + 1,
      })
      return json({ jobId: id }, 201)
    },
  })
}
