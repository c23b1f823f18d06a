/** One request explained, as the API has it. */
import { useQuery } from '@tanstack/react-query'
import { api } from '../../../app/transport.ts'
import type { SeenRequest } from '../requests.ts'

export type SpanKind = 'statement' | 'queue' | 'commit' | 'lock' | 'function'

export interface Span {
  readonly kind: SpanKind
  /** The statement without values, or the name of the function. */
  readonly label: string
  readonly startMs: number
  readonly ms: number
  readonly rows: number | null
  /** Of a function: how much of its time it waited for a host. */
  readonly waitMs: number | null
  readonly isFailed: boolean
}

export interface Stage {
  readonly stage: 'authenticate' | 'validate' | 'handle' | 'respond'
  readonly startMs: number
  readonly ms: number
}

export interface Trace {
  readonly stages: readonly Stage[]
  readonly spans: readonly Span[]
  readonly dropped: number
  readonly rules: readonly { readonly table: string; readonly rule: string; readonly text: string }[]
  readonly userAgent: string | null
  readonly requestBytes: number | null
  readonly responseBytes: number | null
  readonly body: string | null
}

/** The body of `POST /api/rules/explain`. */
export interface AccessQuestion {
  readonly namespace: string
  readonly instanceId?: string
  readonly table: string
  readonly operation: string
  readonly caller: { readonly kind: 'anonymous' } | { readonly kind: 'claims'; readonly auth: object }
  readonly id?: string
  readonly row?: object
}

export interface AccessExplanation {
  readonly allowed: boolean
  readonly verdict: number
  readonly reason: string | null
  readonly clauses: readonly {
    readonly text: string
    readonly path: string
    readonly result: boolean | null
    readonly values: Readonly<Record<string, unknown>>
  }[]
  readonly suggestions: readonly { readonly table: string; readonly fields: readonly string[] }[]
}

export interface ExplainedRequest extends SeenRequest {
  readonly trace: Trace | null
  readonly access: { readonly question: AccessQuestion; readonly explanation: AccessExplanation | null } | null
}

export const useRequest = (requestId: string) =>
  useQuery({
    queryKey: ['requests', 'one', requestId],
    queryFn: ({ signal }) => api.get<ExplainedRequest>(`/api/requests/${encodeURIComponent(requestId)}`, { signal }),
  })
