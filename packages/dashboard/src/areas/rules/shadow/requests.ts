/** Shadow runs as the API has them, and the requests for them. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { api } from '../../../app/transport.ts'
import type { Question } from '../question.ts'
import type { Clause } from '../requests.ts'

export const shadowOperations = ['read', 'create', 'update', 'update.after', 'delete'] as const
export type ShadowOperation = (typeof shadowOperations)[number]

export interface RuleSource {
  readonly rule: string
  /** Where the configuration has it, such as `databases.shared.tables.posts.access.read`. */
  readonly path: string
}

interface RuleAddress {
  readonly namespace: string
  readonly table: string
  readonly operation: ShadowOperation
}

/** The rule in force. A reload of the configuration changes it, so it is read again with each visit. */
export const useRuleSource = (address: RuleAddress) =>
  useQuery({
    queryKey: ['rules', 'source', address],
    enabled: address.table !== '',
    staleTime: 0,
    queryFn: ({ signal }) => api.get<RuleSource>('/api/rules/source', { query: address, signal }),
  })

export interface ShadowQuestion extends RuleAddress {
  readonly instanceId?: string
  readonly rule: string
  readonly callers: readonly Question['caller'][]
}

export interface ChangedRow {
  readonly id: string
  readonly before: readonly Clause[]
  readonly after: readonly Clause[]
}

export interface Changed {
  readonly count: number
  readonly ids: readonly string[]
  readonly rows: readonly ChangedRow[]
}

export interface ShadowOfCaller {
  readonly auth: object | null
  readonly gained: Changed
  readonly lost: Changed
  /** Both rules for this caller, as text. */
  readonly before: string
  readonly after: string
  readonly error: string | null
  readonly errorAt: { readonly line: number; readonly column: number } | null
}

export interface ShadowRun {
  readonly rows: number
  readonly callers: readonly ShadowOfCaller[]
}

/** Nothing is stored, so that a run may be repeated at any time. */
export const useShadowRun = () =>
  useMutation({ mutationFn: (body: ShadowQuestion) => api.post<ShadowRun>('/api/rules/shadow', { body }) })
