/** Runs the hooks of the writes of one request: of each event in their order, each with the row of the one before. */
import type { BeforeFunction, Exported } from '../config/sections/functions/exported.ts'
import type { BeforeCall, BeforeInput, BeforeOutcome, BeforeResult, HostFailure } from '../engines/hosts/hosts.ts'
import type { AnyContext } from './context.ts'

type FailureOf = (error: unknown) => HostFailure

/** JSON, frozen with everything in it. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const member of Object.values(value)) frozen(member)
  return Object.freeze(value)
}

class HookError extends Error {
  constructor(
    readonly hook: string,
    override readonly cause: unknown,
  ) {
    super('A hook failed')
  }
}

export interface BeforeParts {
  readonly functions: ReadonlyMap<string, Exported>
  readonly ctx: AnyContext
  readonly failureOf: FailureOf
  /** Called with the index among the hooks of the input before code runs that may not return. */
  readonly onStep: (step: number) => void
}

/** Knows which hook runs: of those that have not returned the one that began last, or else the first. */
function createSteps(hooks: readonly string[], onStep: BeforeParts['onStep']) {
  const running: string[] = []
  return {
    begin(hook: string): void {
      running.push(hook)
      onStep(hooks.indexOf(hook))
    },
    end(hook: string): void {
      running.splice(running.indexOf(hook), 1)
      const [oldest] = running
      if (oldest !== undefined) onStep(hooks.indexOf(oldest))
    },
  }
}

type Row = Readonly<Record<string, unknown>>

const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !('toJSON' in value)

/** Whether JSON has a member for a value. */
function hasJson(value: unknown): boolean {
  switch (typeof value) {
    case 'object':
      return value === null || !('toJSON' in value) || JSON.stringify(value) !== undefined
    case 'undefined':
    case 'function':
    case 'symbol':
      return JSON.stringify(value) !== undefined
    default:
      return true
  }
}

/** What JSON makes of `returned` is the same as for the result. */
export function resultOf(hook: string, row: Row, returned: unknown): BeforeResult {
  if (!isRow(returned)) return { hook, returned }
  // Without a prototype, a field called `__proto__` is a name like any other.
  const changed: Record<string, unknown> = Object.create(null)
  const removed: string[] = []
  for (const name of Object.keys(returned)) {
    const value = returned[name]
    if (value === row[name] && Object.hasOwn(row, name)) continue
    if (hasJson(value)) changed[name] = value
    else if (Object.hasOwn(row, name)) removed.push(name)
  }
  for (const name of Object.keys(row)) if (!Object.hasOwn(returned, name)) removed.push(name)
  return { hook, changed, removed }
}

/** What the hooks return; null if that is nothing. */
async function runHooks(
  { hooks, event }: BeforeCall,
  caller: BeforeInput['caller'],
  { functions, ctx }: BeforeParts,
  steps: ReturnType<typeof createSteps>,
): Promise<BeforeResult | null> {
  let result: { readonly hook: string; readonly returned: unknown } | null = null
  let { row } = event
  for (const hook of hooks)
    try {
      const declared = functions.get(hook) as BeforeFunction
      steps.begin(hook)
      // A change in place would be lost: it is an error here.
      const returned: unknown = await declared.run({ ...event, row: frozen(row), caller }, ctx)
      if (returned === undefined || returned === null) continue
      if (typeof returned === 'object' && !Array.isArray(returned)) row = { ...returned }
      result = { hook, returned }
    } catch (error) {
      throw new HookError(hook, error)
    } finally {
      steps.end(hook)
    }
  return result && resultOf(result.hook, event.row, result.returned)
}

/** Runs the hooks of all events at once. If some fail, the outcome is the failure of the first event that did. */
export async function runBefore({ hooks, calls, caller }: BeforeInput, parts: BeforeParts): Promise<BeforeOutcome> {
  const steps = createSteps(hooks, parts.onStep)
  const outcomes = await Promise.allSettled(calls.map((call) => runHooks(call, caller, parts, steps)))
  for (const [index, one] of outcomes.entries())
    if (one.status === 'rejected') {
      const { hook, cause } = one.reason as HookError
      return { failed: { index, hook, failure: parts.failureOf(cause) } }
    }
  return { results: outcomes.map((one) => (one.status === 'fulfilled' ? one.value : null)) }
}
