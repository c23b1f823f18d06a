/** The endpoint of the processes that run functions on this node, for operators. */

import type { Clock } from '../../base/clock.ts'
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { FunctionHosts } from '../../engines/hosts/hosts.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { functionsReadScope, jobsCommon } from './jobs/job-endpoints.ts'

const hostSchema = z.object({
  pid: z.int(),
  state: z.enum(['starting', 'ready', 'blocked']).meta({ description: '`blocked` if it does not answer' }),
  startedAt: z.iso.datetime(),
  memoryBytes: z.int().nullable().meta({ description: 'Resident memory; null if unknown' }),
  invocations: z.int().meta({ description: 'Calls under way' }),
})

const hostsSchema = z.object({
  items: z.array(hostSchema),
  memoryBytesMax: z.int().meta({ description: 'A process with more is ended' }),
  waiting: z.int().meta({ description: 'Calls that wait for a process' }),
  restarts: z.int().meta({ description: 'Processes that have ended unexpectedly since the start of this node' }),
  lastEnd: z.object({ at: z.iso.datetime(), reason: z.string() }).nullable(),
})

export function createHostsEndpoint({
  hosts,
  clock,
}: {
  readonly hosts: Pick<FunctionHosts, 'status'>
  readonly clock: Clock
}): Endpoint {
  return endpoint({
    ...jobsCommon,
    scope: functionsReadScope,
    name: 'functions.listHosts',
    method: 'GET',
    paths: ['/api/functions/hosts'],
    summary: 'List the processes of this node that run functions',
    replies: { 200: { description: 'The processes that run the current code', schema: hostsSchema } },
    handle() {
      const nowMs = clock.now()
      const { hosts: running, memoryBytesMax, waiting, restarts, lastEnd } = hosts.status()
      return json({
        items: running.map(({ pid, isReady, isBlocked, ageMs, memoryBytes, invocations }) => ({
          pid,
          state: isBlocked ? 'blocked' : isReady ? 'ready' : 'starting',
          startedAt: formatDatetime(nowMs - ageMs),
          memoryBytes,
          invocations,
        })),
        memoryBytesMax,
        waiting,
        restarts,
        lastEnd: lastEnd && { at: formatDatetime(nowMs - lastEnd.ageMs), reason: lastEnd.reason },
      })
    },
  })
}
