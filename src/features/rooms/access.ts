/**
 * What the rules of a namespace say: who may join, act, signal, and see what is shown over HTTP. A rule that throws, or
 * gives anything but `true`, denies; what it threw is for the log.
 */
import type { Auth, Caller } from '../../access/caller.ts'
import { denied } from '../../access/check.ts'
import type { Log } from '../../base/log.ts'
import type { Mode } from '../../config/config.ts'
import type { RoomNamespace } from '../../config/rooms.ts'
import { accessDenied } from '../../errors.ts'

export interface RoomAccessCheck {
  mayJoin(namespace: RoomNamespace, roomId: string, auth: Auth): boolean
  mayAct(namespace: RoomNamespace, roomId: string, auth: Auth, actionType: string, payload: unknown): boolean
  maySignal(namespace: RoomNamespace, roomId: string, auth: Auth, event: string, payload: unknown): boolean
  /** Whether metadata and summary of the room may be shown to the caller. */
  maySeeMetadata(namespace: RoomNamespace, roomId: string, caller: Caller): boolean
  /** Throws 401 or 403 unless metadata and summary of the room may be shown to the caller. */
  requireMetadata(namespace: RoomNamespace, roomId: string, caller: Caller): void
}

type Rule<Args extends unknown[]> = boolean | ((...args: Args) => unknown)

export function createRoomAccess({ mode, log }: { readonly mode: () => Mode; readonly log: Log }): RoomAccessCheck {
  function allows<Args extends unknown[]>(
    rule: Rule<Args>,
    name: string,
    { name: namespace }: RoomNamespace,
    args: Args,
  ) {
    if (typeof rule === 'boolean') return rule
    try {
      return rule(...args) === true
    } catch (error) {
      log.error('A room rule failed and denied the request', { rule: `rooms.${namespace}.access.${name}`, error })
      return false
    }
  }

  /** SPEC: without a rule, shown to whoever develops, and in release mode not without somebody having said so. */
  const isShownByDefault = (): boolean => mode() === 'development'

  function maySeeMetadata(namespace: RoomNamespace, roomId: string, caller: Caller): boolean {
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
    requireMetadata(namespace, roomId, caller) {
      if (maySeeMetadata(namespace, roomId, caller)) return
      throw namespace.access.metadata === undefined ? accessDenied() : denied(caller)
    },
  }
}
