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

/** A hook that failed, and what it threw. */
class HookFailure {
  constructor(
    readonly hook: string,
    readonly cause: unknown,
  ) {}
}

export interface BeforeParts {
  readonly functions: ReadonlyMap<string, Exported>
  readonly ctx: AnyContext
  readonly caller: { readonly kind: 'anonymous' | 'user' | 'service'; readonly auth: object | null }
  readonly failureOf: FailureOf
  /** Called with the index among all hooks of the input before code runs that may not return. */
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

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)

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
export function resultOf(hook: string, row: Row, value: unknown): BeforeResult {
  const hasOwnJson = typeof value === 'object' && value !== null && 'toJSON' in value
  const returned: unknown = hasOwnJson ? JSON.parse(JSON.stringify(value) ?? 'null') : value
  if (!isRow(returned)) return { hook, returned: hasJson(returned) ? returned : null }
  // Without a prototype, a field called `__proto__` is a name like any other.
  const changed: Record<string, unknown> = Object.create(null)
  const removed: string[] = []
  for (const name of Object.keys(returned)) {
    const member = returned[name]
    if (member === row[name] && Object.hasOwn(row, name)) continue
    if (hasJson(member)) changed[name] = member
    else if (Object.hasOwn(row, name)) removed.push(name)
  }
  for (const name of Object.keys(row)) if (!Object.hasOwn(returned, name)) removed.push(name)
  return { hook, changed, removed }
}

/** What the hooks return, null if that is nothing; or the first failure. */
async function runHooks(
  { hooks, event }: BeforeCall,
  { functions, ctx, caller }: BeforeParts,
  steps: ReturnType<typeof createSteps>,
): Promise<BeforeResult | HookFailure | null> {
  let result: BeforeResult | null = null
  let { row } = event
  for (const [index, hook] of hooks.entries())
    try {
      const declared = functions.get(hook) as BeforeFunction
      steps.begin(hook)
      // A change in place would be lost: it is an error here.
      const returned: unknown = await declared.run({ ...event, row: frozen(row), caller }, ctx)
      if (returned === undefined || returned === null) continue
      result = resultOf(hook, event.row, returned)
      const isLast = index === hooks.length - 1
      if (!isLast && typeof returned === 'object' && !Array.isArray(returned)) row = { ...returned }
    } catch (error) {
      return new HookFailure(hook, error)
    } finally {
      steps.end(hook)
    }
  return result
}

/** Runs the hooks of all events at once. If some fail, the outcome is the failure of the first event that did. */
export async function runBefore(calls: BeforeInput, parts: BeforeParts): Promise<BeforeOutcome> {
  const [only] = calls
  const hooks = only && calls.length === 1 ? only.hooks : [...new Set(calls.flatMap((call) => call.hooks))]
  const steps = createSteps(hooks, parts.onStep)
  const outcomes = await Promise.all(calls.map((call) => runHooks(call, parts, steps)))
  const results: (BeforeResult | null)[] = []
  for (const [index, one] of outcomes.entries()) {
    if (one instanceof HookFailure) return { failed: { index, hook: one.hook, failure: parts.failureOf(one.cause) } }
    results.push(one)
  }
  return { results }
}
