/**
 * What one sampled request does: its stages, the statements and functions that it runs, and the rules that are
 * evaluated for it. The trace of a request is in its asynchronous context, so that engines find it without being passed
 * it; outside of sampled requests there is none, which costs one lookup.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { traceRulesMax, traceSpansMax, traceTextCharsMax } from '../../limits/dashboard.ts'

/** In the order of a request: rate limit and credentials, query and body, the endpoint, the response. */
export const traceStages = ['authenticate', 'validate', 'handle', 'respond'] as const
export type TraceStage = (typeof traceStages)[number]

/**
 * `statement`: SQL until its rows were read. `queue`: a write that waits for the writer. `commit`: from the end of the
 * work of a write until it is durable. `lock`: a write that waits for an advisory lock. `function`: a function or hook
 * of the application.
 */
export type SpanKind = 'statement' | 'queue' | 'commit' | 'lock' | 'function'

/** Something that took time. Times are in milliseconds, from the start of the request. */
export interface TraceSpan {
  readonly kind: SpanKind
  /** The SQL with `?` for each value, or the name of the function. */
  readonly label: string
  readonly startMs: number
  readonly ms: number
  /** Rows read or changed; null where they are not counted. */
  readonly rows: number | null
  /** Of `ms`, how long a function waited for a host; null for other spans, and where no host was given to it. */
  readonly waitMs: number | null
  readonly isFailed: boolean
}

/** A rule of a table that was evaluated for the caller of the request. */
export interface TraceRule {
  readonly table: string
  readonly rule: string
  /** Its result for the caller: `true`, `false` or a condition on records. */
  readonly text: string
}

export interface StageTime {
  readonly stage: TraceStage
  readonly startMs: number
  readonly ms: number
}

export class RequestTrace {
  readonly spans: TraceSpan[] = []
  readonly rules: TraceRule[] = []
  readonly stages: StageTime[] = []
  /** Spans beyond the bound. */
  dropped = 0
  readonly #startMs = performance.now()
  #stage: TraceStage = 'authenticate'
  #stageStartMs = 0
  #isEnded = false

  /** Ends the stage before. */
  enter(stage: TraceStage): void {
    if (this.#isEnded) return
    const nowMs = this.now()
    this.stages.push({ stage: this.#stage, startMs: this.#stageStartMs, ms: nowMs - this.#stageStartMs })
    this.#stage = stage
    this.#stageStartMs = nowMs
  }

  /** Nothing is added afterwards: work that the request started may outlive it. */
  end(): void {
    this.enter(this.#stage)
    this.#isEnded = true
  }

  /** Milliseconds since the start of the request. */
  now(): number {
    return performance.now() - this.#startMs
  }

  span(
    kind: SpanKind,
    label: string,
    startMs: number,
    outcome: Partial<Pick<TraceSpan, 'rows' | 'waitMs' | 'isFailed'>> = {},
  ): void {
    if (this.#isEnded) return
    if (this.spans.length >= traceSpansMax) this.dropped += 1
    else
      this.spans.push({
        kind,
        label: label.slice(0, traceTextCharsMax),
        startMs,
        ms: this.now() - startMs,
        rows: null,
        waitMs: null,
        isFailed: false,
        ...outcome,
      })
  }

  /** Adds a span for `work`; `rowsOf` counts the rows of its result. */
  async time<T>(
    kind: SpanKind,
    label: string,
    work: () => Promise<T>,
    rowsOf: (result: T) => number | null = () => null,
  ): Promise<T> {
    const startMs = this.now()
    try {
      const result = await work()
      this.span(kind, label, startMs, { rows: rowsOf(result) })
      return result
    } catch (error) {
      this.span(kind, label, startMs, { isFailed: true })
      throw error
    }
  }

  rule(table: string, rule: string, text: string): void {
    if (!this.#isEnded && this.rules.length < traceRulesMax) this.rules.push({ table, rule, text })
  }

  /** Characters that it keeps, for the bound on all of them. */
  get chars(): number {
    const spans = this.spans.reduce((sum, { label }) => sum + label.length + spanChars, 0)
    return this.rules.reduce((sum, { text }) => sum + text.length + spanChars, spans)
  }
}

/** What a span takes beside its text. */
const spanChars = 80

const storage = new AsyncLocalStorage<RequestTrace>()

/** The trace of the request that is being served; undefined for one that is not sampled. */
export const currentTrace = (): RequestTrace | undefined => storage.getStore()

/** Runs the work of a sampled request. */
export const runTraced = <T>(trace: RequestTrace, work: () => T): T => storage.run(trace, work)
