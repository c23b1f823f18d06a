/**
 * Evaluates the access rules of a namespace: join, action, signal and metadata. A rule allows by `true`, by a filter
 * that matches the room, or by a promise of either. Any other result denies, as does an error, which is logged.
 */
import type { Auth, Caller } from '../../access/caller.ts'
import { decide, denied, roomsTable } from '../../access/check.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Log } from '../../base/log.ts'
import type { Mode } from '../../config/config.ts'
import type { RoomNamespace } from '../../config/sections/rooms/rooms.ts'
import { accessDenied } from '../../errors.ts'

/** A promise only where a rule queries a table; it rejects with `EngineError` while the database is unavailable. */
type Allowed = boolean | Promise<boolean>

export interface RoomAccessCheck {
  mayJoin(namespace: RoomNamespace, roomId: string, auth: Auth): Allowed
  mayAct(namespace: RoomNamespace, roomId: string, auth: Auth, actionType: string, payload: unknown): Allowed
  maySignal(namespace: RoomNamespace, roomId: string, auth: Auth, event: string, payload: unknown): Allowed
  /** Whether metadata and summary of the room may be shown to the caller. */
  maySeeMetadata(namespace: RoomNamespace, roomId: string, caller: Caller): Allowed
  /** Rejects with 401 or 403 unless metadata and summary of the room may be shown to the caller. */
  requireMetadata(namespace: RoomNamespace, roomId: string, caller: Caller): Promise<void>
}

/** Errors for the sender of an action. */
export const actionDenied = ['ACTION_DENIED', 'The access rule denies this action'] as const
/** An error for any sender: a rule has rejected with `EngineError`. */
export const rulesUnavailable = ['UNAVAILABLE', 'Access rules cannot be evaluated at the moment; retry later'] as const

export interface RoomAccessDeps {
  readonly mode: () => Mode
  readonly ruleEvaluator: RuleEvaluator
  readonly log: Log
}

type Rule<Args extends unknown[]> = boolean | ((auth: Auth | null, roomId: string, ...args: Args) => unknown)

export function createRoomAccess({ mode, ruleEvaluator, log }: RoomAccessDeps): RoomAccessCheck {
  function allows<Args extends unknown[]>(
    rule: Rule<Args>,
    name: string,
    namespace: RoomNamespace,
    args: [auth: Auth | null, roomId: string, ...Args],
  ): Allowed {
    return typeof rule === 'boolean' ? rule : evaluate(rule, name, namespace, args)
  }

  function evaluate<Args extends unknown[]>(
    rule: Exclude<Rule<Args>, boolean>,
    name: string,
    { name: namespace }: RoomNamespace,
    [auth, roomId, ...args]: [Auth | null, string, ...Args],
  ): Allowed {
    return decide(ruleEvaluator, {
      rule: () => rule(auth, roomId, ...args),
      table: roomsTable,
      subject: { id: roomId },
      report: (error) => log.error('access.room_rule_failed', { rule: `rooms.${namespace}.access.${name}`, error }),
    })
  }

  /** Without a rule: public in development mode; in release mode only with `public.metadata` (ROOM-METADATA-1). */
  const isShownByDefault = (): boolean => mode() === 'development'

  function maySeeMetadata(namespace: RoomNamespace, roomId: string, caller: Caller): Allowed {
    if (caller.kind === 'service' || namespace.hasPublicMetadata) return true
    const rule = namespace.access.metadata
    return rule === undefined ? isShownByDefault() : allows(rule, 'metadata', namespace, [caller.auth, roomId])
  }

  return {
    mayJoin: (namespace, roomId, auth) => allows(namespace.access.join ?? false, 'join', namespace, [auth, roomId]),
    mayAct: (namespace, roomId, auth, actionType, payload) =>
      allows(namespace.access.action ?? true, 'action', namespace, [auth, roomId, actionType, payload]),
    maySignal: (namespace, roomId, auth, event, payload) =>
      allows(namespace.access.signal ?? false, 'signal', namespace, [auth, roomId, event, payload]),
    maySeeMetadata,
    async requireMetadata(namespace, roomId, caller) {
      if (await maySeeMetadata(namespace, roomId, caller)) return
      throw namespace.access.metadata === undefined ? accessDenied() : denied(caller)
    },
  }
}
