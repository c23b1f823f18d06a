/**
 * Runs the function of a job in a host. The n-th write of each attempt has the same effect key, so that the writes of a
 * repeated attempt happen once.
 */
import { HostError } from '../../../engines/hosts/hosts.ts'
import { functionTimeoutMs } from '../../../limits/functions.ts'
import type { FunctionDefinition } from '../definitions/definition.ts'
import { requestIdOf } from '../dispatch/cause.ts'
import type { Invoker } from '../invoke/invoker.ts'
import type { ClaimedJob } from './job.ts'
import { JobError } from './job-error.ts'

export interface RunJobDeps {
  readonly invoker: Invoker
  readonly definitions: () => readonly FunctionDefinition[]
}

/** What the function gets. The events of changes and of users have the number of the attempt. */
function inputOf({ kind, input, attempt }: ClaimedJob): unknown {
  const value: unknown = JSON.parse(input)
  return kind === 'onChange' || kind === 'onUser' ? { ...(value as object), attempt } : value
}

/** The request on whose behalf the function runs: its own requests are one deeper. */
const causeOfRun = ({ depth, function: name, id }: ClaimedJob): string =>
  depth > 1 ? requestIdOf({ function: name, depth: depth - 1 }, id) : id

function scheduledAtMs({ kind, input }: ClaimedJob): { readonly scheduledAtMs?: number } {
  if (kind !== 'schedule') return {}
  return { scheduledAtMs: Date.parse((JSON.parse(input) as { scheduledAt: string }).scheduledAt) }
}

/** Throws where the attempt failed. */
export const createRunJob =
  ({ invoker, definitions }: RunJobDeps) =>
  async (job: ClaimedJob, signal: AbortSignal): Promise<void> => {
    const definition = definitions().find(({ name }) => name === job.function)
    if (!definition) throw new JobError('busy', 'The function is not declared')
    const timeoutMs = ('timeoutMs' in definition ? definition.timeoutMs : null) ?? functionTimeoutMs
    const requestId = causeOfRun(job)
    try {
      await invoker.invoke({
        name: job.function,
        input: inputOf(job),
        caller: null,
        requestId,
        timeoutMs,
        signal: () => signal,
        effects: job.id,
        context: {
          idempotencyKey: job.id,
          attempt: job.attempt,
          jobId: job.id,
          ...scheduledAtMs(job),
        },
      })
    } catch (error) {
      if (!(error instanceof HostError)) throw error
      const { failure } = error
      if (failure.kind === 'overloaded') throw new JobError('busy', failure.message)
      // No caller receives the refusal.
      if (failure.kind === 'refused') {
        const { message } = failure
        invoker.report({ name: job.function, requestId }, { reason: 'failed', message, location: null })
      }
      // An input that does not fit its schema never will.
      if (failure.kind === 'refused' && failure.slug === 'invalid-input') throw new JobError('final', failure.message)
      throw error
    }
  }
