/** Reports that the application's code has returned what cannot be used. */
import { type ApiError, hookFailed } from '../../../errors.ts'
import type { FunctionDefinition } from '../definitions/definition.ts'
import type { Invoker } from '../invoke/invoker.ts'

/** Returns the error for the caller. */
export function reportHook(
  invoker: Pick<Invoker, 'report'>,
  { name }: Pick<FunctionDefinition, 'name'>,
  requestId: string,
  message: string,
): ApiError {
  invoker.report({ name, requestId }, { reason: 'failed', message, location: null })
  return hookFailed()
}
