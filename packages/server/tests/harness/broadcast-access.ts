/** Broadcast channels in the matrix of endpoints: one rule of each kind, and whom it admits. */

type Auth = { readonly id: string; readonly role: string | null } | null
type Rule = boolean | ((auth: Auth, name: string) => unknown)

/** The callers that rules tell apart; service keys are told apart by their scopes alone. */
export const broadcastCallers = ['anonymous', 'user', 'admin'] as const
export type BroadcastCaller = (typeof broadcastCallers)[number]

interface RuleKind {
  /** Undefined for one that is left out. */
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
  // Only `true` admits: a rule that gives anything else, or fails, denies.
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

/** The channel where `use` has a rule of that kind, and the other use has none. */
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
