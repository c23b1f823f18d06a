/** What an attack has found open: findings, how severe they are, and which are intended. */
import { UsageError } from '../../command.ts'

/** From the one who needs the least to the one who needs the most. */
export const attackers = ['anonymous', 'otherTenant', 'otherUser'] as const
export type AttackerKind = (typeof attackers)[number]

export const attackOperations = ['read', 'create', 'update', 'delete', 'join', 'call'] as const
export type AttackOperation = (typeof attackOperations)[number]

export type Severity = 'critical' | 'high' | 'medium' | 'low'

export interface Finding {
  /** Such as `shared.posts`, `bucket photos`, `room game`, `kv cache`, `function checkout`. */
  readonly target: string
  readonly operation: AttackOperation
  /** The one who needs the least of those who succeeded. */
  readonly attacker: AttackerKind
  readonly severity: Severity
  /** Whether the record names another user, or a tenant, as the one that it belongs to. */
  readonly isOwned: boolean
  /** The rule that permits it. */
  readonly rule: string
  /** The fields of the record by which it differs from one that is not open; null if every record is. */
  readonly only: string | null
}

const attackerNames: Readonly<Record<AttackerKind, string>> = {
  anonymous: 'an anonymous caller',
  otherTenant: 'a user of another tenant',
  otherUser: 'another user',
}

/** A read by all signed-in users may be meant; a change of what belongs to someone else hardly ever is. */
const severities: Readonly<Record<AttackOperation, Readonly<Record<AttackerKind, Severity>>>> = {
  read: { anonymous: 'medium', otherTenant: 'medium', otherUser: 'low' },
  create: { anonymous: 'high', otherTenant: 'medium', otherUser: 'medium' },
  update: { anonymous: 'critical', otherTenant: 'critical', otherUser: 'high' },
  delete: { anonymous: 'critical', otherTenant: 'critical', otherUser: 'high' },
  join: { anonymous: 'medium', otherTenant: 'low', otherUser: 'low' },
  call: { anonymous: 'low', otherTenant: 'low', otherUser: 'low' },
}

/** `isSealed`: of what only service keys should reach. */
function severityOf({ operation, attacker, isOwned }: Omit<Finding, 'severity'>, isSealed: boolean): Severity {
  if (isSealed) return 'critical'
  // Records that belong to no one in particular are for users to create.
  if (operation === 'create' && attacker !== 'anonymous' && !isOwned) return 'low'
  return severities[operation][attacker]
}

/** The name that `--allow` takes. */
export const nameOf = ({ target, operation, attacker }: Finding): string => `${target}:${operation}:${attacker}`

export const sentenceOf = (finding: Finding): string => {
  const { target, operation, attacker, only, isOwned } = finding
  const what = operation !== 'create' ? operation : isOwned ? 'create records of another user in' : 'create records in'
  return `${attackerNames[attacker]} may ${what} ${target}${only === null ? '' : ` where ${only}`}`
}

export type IsAllowed = (finding: Finding) => boolean

/**
 * Parses `--allow`: names of findings, separated by commas. `shared.posts:read` allows every attacker;
 * `shared.posts:read:otherTenant` this one and those who need more. Throws `UsageError`.
 */
export function parseAllowed(text: string): IsAllowed {
  const entries = text.split(',').map((entry) => {
    const [target = '', operation, attacker = 'anonymous', ...more] = entry.trim().split(':')
    const isKnown = operation === '*' || attackOperations.some((one) => one === operation)
    const least = (attackers as readonly string[]).indexOf(attacker)
    if (target === '' || !isKnown || least < 0 || more.length > 0)
      throw new UsageError(`--allow: "${entry.trim()}" is not target:operation or target:operation:caller.`)
    return { target, operation, least }
  })
  return (finding) =>
    entries.some(
      ({ target, operation, least }) =>
        target === finding.target &&
        (operation === '*' || operation === finding.operation) &&
        attackers.indexOf(finding.attacker) >= least,
    )
}

/** Keeps for each target and operation the finding whose attacker needs the least. */
export class Findings {
  private readonly found = new Map<string, Finding>()
  /** What could not be tried, and why. */
  readonly notes: string[] = []

  add(finding: Omit<Finding, 'severity'>, isSealed = false): void {
    const { target, operation, attacker } = finding
    const key = `${target}:${operation}`
    const known = this.found.get(key)
    const isWeaker = known && attackers.indexOf(known.attacker) < attackers.indexOf(attacker)
    // One that is open without a condition says more than one with.
    const isNarrower = known && known.attacker === attacker && (known.only === null || finding.only !== null)
    if (isWeaker || isNarrower) return
    this.found.set(key, { ...finding, severity: severityOf(finding, isSealed) })
  }

  note(text: string): void {
    if (!this.notes.includes(text)) this.notes.push(text)
  }

  /** The most severe first. */
  list(): readonly Finding[] {
    const order: readonly Severity[] = ['critical', 'high', 'medium', 'low']
    return [...this.found.values()].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity))
  }
}
