/** The endpoint of transactions: operations on several tables of a namespace, all or nothing. */
import { z } from '../../../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../../../http/endpoint.ts'
import { flagParam } from '../../../../http/input/query-schema.ts'
import { batchOperationsMax } from '../../../../limits/api.ts'
import type { CheckTransactionJobs } from '../../../transaction-jobs.ts'
import { common } from '../../table-endpoint.ts'
import type { WriteEndpointsDeps } from '../endpoints.ts'
import type { Write } from '../write-context.ts'
import { runTransaction, transactionShape } from './transaction.ts'
import {
  functionTransactionBody,
  isFailedCondition,
  type Operation,
  parseOperations,
  requireScopes,
  resolveTables,
  type TransactionBody,
  transactionBody,
} from './transaction-input.ts'

const transactionReply = z.object({
  results: z.array(z.object({})).meta({
    description: 'In the order of the operations: the record, `{id}` for a delete, `{ok: true}` for a check',
  }),
  versions: z.array(z.int().nullable()).optional().meta({
    description:
      'With `versions=1`, in the order of the operations; null for checks and for what the caller may not read',
  }),
})

const isInsert = ({ kind }: Operation): boolean => kind === 'insert'

export interface TransactionDeps extends WriteEndpointsDeps {
  /** Called for each transaction that is refused because a condition does not hold, with the function that ran it. */
  readonly onConflict: (functionName: string | undefined) => void
  /** Checks the jobs that a function adds. */
  readonly checkJobs: CheckTransactionJobs
}

export function transactionEndpoint({
  resolve,
  runWrite,
  generate,
  limits,
  onConflict,
  checkJobs,
}: TransactionDeps): Endpoint {
  return endpoint({
    ...common,
    name: 'records.transaction',
    isExpensive: true,
    method: 'POST',
    paths: ['/api/db/:namespace/transaction', '/api/db/:namespace/:instanceId/transaction'],
    summary: 'Change several tables in one transaction',
    description: `1 to ${batchOperationsMax} operations in order; all or nothing. A condition that does not hold is 409. A list with \`check=1\` has its \`check\`, which goes before the changes of its table. A service key needs \`db:table:{table}:write\` for every table that it changes, and \`db:table:{table}:read\` for every table that it checks.`,
    query: z.object({ versions: flagParam('1: the response has `versions`') }),
    body: transactionBody as z.ZodType<TransactionBody>,
    functionBody: functionTransactionBody,
    replies: { 200: { description: 'The results of the operations', schema: transactionReply } },
    errors: [404, 409],
    async handle(call) {
      const { operations: bodies, jobs: given = [] } = call.body
      requireScopes(call.caller, bodies)
      const calls = await resolveTables(bodies, (table) => resolve({ ...call, params: { ...call.params, table } }))
      const operations = await parseOperations(bodies, calls, generate())
      // Jobs alone need a database too.
      const [first = await resolve(call)] = calls.values()
      const jobs = given.length > 0 ? await checkJobs(given) : []
      const options = { bytesMax: limits.bytesMax(), showsVersions: call.query.versions, jobs }
      // Counted where it happens: a request with an Idempotency-Key gets its refusal as a stored response.
      const work = (write: Write) =>
        runTransaction(write, operations, options).catch((error) => {
          if (isFailedCondition(error)) onConflict(call.functionName)
          throw error
        })
      return runWrite(call, first, () => transactionShape(operations), work, {
        spansTables: calls.size > 1,
        ...(operations.every(isInsert) ? { foresees: { operation: 'insert', rehearse: work } } : {}),
      })
    },
  })
}
