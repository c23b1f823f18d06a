/** Runs functions by kind, and reports their results and errors. */
import type { Exported } from '../config/sections/functions/exported.ts'
import { isHttpError } from '../config/sections/functions/http-error.ts'
import { findLocation } from '../config/sections/functions/location.ts'
import type { StandardSchema } from '../config/sections/functions/standard-schema.ts'
import type { BeforeInput, HostFailure, HttpInput } from '../engines/hosts/hosts.ts'
import type { FromInvocation, InvokeMessage } from '../engines/hosts/protocol.ts'
import { runBefore } from './before.ts'
import { CallerRefusals } from './caller-refusals.ts'
import { send, sendNow } from './channel.ts'
import { type AnyContext, createContext, lazy, type PrepareInput } from './context.ts'
import { checkCaller, checkOutput, parseInput } from './input.ts'
import { currentInvocation } from './log-lines.ts'
import type { MailTemplates } from './mail-templates.ts'
import { isStream, StreamWindow, sendResponse, sendStream, toJson, type Values } from './results.ts'

export interface RunParts {
  readonly functions: ReadonlyMap<string, Exported>
  readonly url: string
  readonly outboundFetch: typeof fetch
  readonly mailTemplates: MailTemplates
  /** See `prepareInputFor`. */
  readonly prepareInput: PrepareInput
}

/** An invocation that this host has received. */
export interface HostedRun {
  start(): void
  abort(reason: 'timeout' | 'aborted'): void
  /** The consumer of the stream has read a chunk. */
  pull(): void
}

interface RunEvents {
  /** Of functions that run together, the index of the one that runs now. */
  readonly onStep: (step: number) => void
  /** Whether this host has no other invocation, whose messages could be sent with those of this one. */
  readonly isAlone: () => boolean
  readonly onEnd: () => void
}

export function createRun(message: InvokeMessage, parts: RunParts, events: RunEvents): HostedRun {
  const { id, name, input, context: given, timeoutMs } = message
  const { onStep, isAlone, onEnd } = events
  const controller = lazy(() => new AbortController())
  const signal = (): AbortSignal => controller().signal
  const window = lazy(() => new StreamWindow())
  const refusals = new CallerRefusals()

  const end = (last: FromInvocation): void => (isAlone() ? sendNow : send)(last)

  async function run(): Promise<void> {
    try {
      const declared = parts.functions.get(name)
      if (!declared) throw new Error(`There is no function ${name}`)
      const { url, outboundFetch, mailTemplates, prepareInput } = parts
      const ctx = createContext({
        id,
        given,
        signal,
        timeoutMs,
        url,
        outboundFetch,
        mailTemplates,
        prepareInput,
        refusals,
      })
      if (declared.kind === 'before') {
        const caller = { kind: given.callerKind ?? 'anonymous', auth: given.auth }
        const { functions } = parts
        const outcome = await runBefore(input as BeforeInput, { functions, ctx, caller, failureOf, onStep })
        return end({ type: 'value', id, json: JSON.stringify(outcome) })
      }
      const result = await runs[declared.kind](declared as never, input as never, ctx, given)
      if (result instanceof Response) await sendResponse(id, result, window(), signal())
      else if (isStream(result)) await sendStream(id, result, window(), signal())
      else end({ type: 'value', id, json: toJson(result) })
    } catch (error) {
      end({ type: 'failed', id, failure: refusalOf(error, refusals) ?? failureOf(error) })
    } finally {
      onEnd()
    }
  }

  return {
    start: () => void currentInvocation.run(id, run),
    abort: (reason) =>
      controller().abort(
        new DOMException(
          reason === 'timeout' ? 'The function is past its deadline' : 'The caller has left',
          reason === 'timeout' ? 'TimeoutError' : 'AbortError',
        ),
      ),
    pull: () => window().release(),
  }
}

type Given = InvokeMessage['context']
type Run<Kind> = (declared: Extract<Exported, { kind: Kind }>, input: never, ctx: AnyContext, given: Given) => unknown

const runEvent = (declared: { run: (event: unknown, ctx: unknown) => unknown }, event: never, ctx: AnyContext) =>
  declared.run(event, ctx)

/** Checks the input of a job against the schema of its queue, and names the job by `uniqueBy`. */
export const prepareInputFor =
  (functions: RunParts['functions']): PrepareInput =>
  async (name, input) => {
    for (const declared of functions.values()) {
      if (declared.kind !== 'queue' || declared.queue !== name) continue
      const { input: schema, uniqueBy } = declared
      const parsed = await parseInput(schema, input)
      // The schema is applied again when the job runs: what it returned may not fit it.
      return uniqueBy ? { input, uniqueKey: String(uniqueBy(parsed as never)) } : { input }
    }
    return { input }
  }

async function* checkEach(values: Values, output: StandardSchema): AsyncGenerator<unknown> {
  for await (const value of values) yield await checkOutput(output, value)
}

/** How each kind of function is called. Hooks before writes are called together. */
const runs: { readonly [Kind in Exclude<Exported['kind'], 'before'>]: Run<Kind> } = {
  onChange: runEvent,
  beforeSignUp: runEvent,
  claims: runEvent,
  onUser: runEvent,
  async rpc(declared, input, ctx, given) {
    checkCaller(declared, given)
    const { output } = declared
    const result: unknown = await declared.run(await parseInput(declared.input, input), ctx)
    if (!output) return result
    return isStream(result) ? checkEach(result, output) : checkOutput(output, result)
  },
  async http(declared, { method, url, headers, body, params }: HttpInput, ctx) {
    const incoming = new Request(url, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      body: body as BodyInit | null,
      signal: ctx.signal,
    })
    const result = await declared.run(incoming, { ...ctx, params })
    if (!(result instanceof Response)) throw new TypeError(`${declared.path} must return a Response`)
    return result
  },
  schedule: (declared, _, ctx, given) =>
    declared.run({ ...ctx, scheduledAt: new Date(given.scheduledAtMs ?? given.nowMs) }),
  async queue(declared, input, ctx, { attempt = 1, jobId = '' }) {
    return declared.run(await parseInput(declared.input, input), { ...ctx, attempt, jobId })
  },
  webhook() {
    throw new Error('Webhooks have no code')
  },
}

/** What the server has refused to the caller is the caller's response. */
function refusalOf(error: unknown, refusals: CallerRefusals): HostFailure | null {
  const refusal = refusals.find(error)
  return refusal && { kind: 'refused', ...refusal }
}

function failureOf(error: unknown): HostFailure {
  if (isHttpError(error)) {
    const { status, slug, message, data } = error
    return { kind: 'refused', status, slug, message, ...(data === undefined ? {} : { data: plain(data) }) }
  }
  if (!(error instanceof Error)) return { kind: 'failed', message: `threw ${String(error)}`, location: null }
  const { name, message, stack } = error
  return {
    kind: 'failed',
    message: name === 'Error' ? message : `${name}: ${message}`,
    ...(stack === undefined ? {} : { stack: stack.slice(0, 8192) }),
    location: findLocation(stack),
  }
}

/** What JSON can express of a value. */
function plain(value: unknown): unknown {
  const text = toJson(value)
  return text === null ? undefined : JSON.parse(text)
}
