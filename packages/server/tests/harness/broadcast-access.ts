/** Broadcast channels for the endpoint matrix: one rule of each kind, and the callers that it admits. */

type Auth = { readonly id: string; readonly role: string | null } | null
type Rule = boolean | ((auth: Auth, name: string) => unknown)

/** Callers that rules can distinguish; service keys are limited by their scopes alone. */
export const broadcastCallers = ['anonymous', 'user', 'admin'] as const
export type BroadcastCaller = (typeof broadcastCallers)[number]

interface RuleKind {
  /** Undefined for a channel without a rule. */
  readonly rule: Rule | undefined
  readonly admits: readonly BroadcastCaller[]
}

export const broadcastRules: Readonly<Record<string, RuleKind>> = {
  allowed: { rule: true, admits: broadcastCallers },
  denied: { rule: false, admits: [] },
  missing: { rule: undefined, admits: [] },
  forAll: { rule: () => true, admits: broadcastCallers },
  forNone: { rule: () => false, admits: [] },
  forUsers: { rule: (auth) => auth !== null, admits: ['user', 'admin'] },
  forAdmins: { rule: (auth) => auth?.role === 'admin', admits: ['admin'] },
  byName: { rule: (_, name) => name.endsWith('byName'), admits: broadcastCallers },
  // Only `true` admits: a rule that returns anything else, or throws, denies.
  truthy: { rule: () => 'yes', admits: [] },
  pending: { rule: () => Promise.resolve(true), admits: [] },
  failing: {
    rule() {
      throw new Error('a defect in a rule')
    },
    admits: [],
  },
}

export const broadcastUses = ['subscribe', 'publish'] as const
export type BroadcastUse = (typeof broadcastUses)[number]

/** The channel with a rule of that kind for `use` and no rule for the other use. */
export const broadcastName = (use: BroadcastUse, kind: string): string => `${use}-${kind}`

/** The section `broadcasts` with a channel for each kind of rule and each use. */
export const broadcastsConfig: Readonly<Record<string, Readonly<Partial<Record<BroadcastUse, Rule>>>>> =
  Object.fromEntries(
    broadcastUses.flatMap((use) =>
      Object.entries(broadcastRules).map(([kind, { rule }]) => [
        broadcastName(use, kind),
        rule === undefined ? {} : { [use]: rule },
      ]),
    ),
  )
