/**
 * Actions in the name of a player, by administrators: on the node that owns the room, under the access rule of the
 * player, in the queue of the room, with its handler, as if the player had sent them.
 */

import type { RoomNamespace } from '../../../config/sections/rooms/rooms.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { roomActionAnswerMs } from '../../../limits/rooms.ts'
import { actionDenied, type RoomAccessCheck, rulesUnavailable } from '../access.ts'
import type { ActingAdministrator, RoomEngine, RoomKey } from '../engine/ports.ts'
import type { ActionResponse } from '../nodes/node-transport.ts'
import type { PendingResponses } from '../nodes/pending-responses.ts'

export interface PlayerAction extends ActingAdministrator {
  readonly actionType: string
  readonly payload: unknown
}

export type ActionOutcome =
  | { readonly kind: 'done'; readonly result: unknown }
  /** The error that the player would have received. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** The room has left the node, or the node has too much to do: nothing has happened. */
  | { readonly kind: 'moved' }
  /** No response in time: the action may have run, or may run yet. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'noPlayer' }

export interface PlayerActionsDeps {
  readonly engine: () => Pick<RoomEngine, 'findOccupancy' | 'findPlayer' | 'receive'>
  readonly responses: Pick<PendingResponses<ActionResponse>, 'begin'>
  readonly access: Pick<RoomAccessCheck, 'mayAct'>
  readonly findNamespace: (name: string) => RoomNamespace | null
}

/** Runs an action in a room of this node; null for a room that is not in memory here. */
export type ActAsPlayer = (key: RoomKey, action: PlayerAction) => Promise<ActionOutcome | null>

const failed = (code: string, message: string): ActionOutcome => ({ kind: 'failed', code, message })

export function createActAsPlayer({ engine, responses, access, findNamespace }: PlayerActionsDeps): ActAsPlayer {
  async function findRefusal(key: RoomKey, action: PlayerAction): Promise<ActionOutcome | null> {
    const namespace = findNamespace(key.namespace)
    const auth = engine().findPlayer(key, action.userId)
    if (!auth || !namespace) return { kind: 'noPlayer' }
    try {
      const isAllowed = await access.mayAct(namespace, key.id, auth, action.actionType, action.payload)
      return isAllowed ? null : failed(...actionDenied)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      return failed(...rulesUnavailable)
    }
  }

  return async (key, action) => {
    if (!engine().findOccupancy(key)) return null
    const refusal = await findRefusal(key, action)
    if (refusal) return refusal
    const { actionType, payload, userId, by } = action
    const bytes = Buffer.byteLength(JSON.stringify(payload))
    const response = await responses.begin((id) => {
      const ids = { connectionId: id, requestId: id }
      engine().receive(key, { type: 'act', ...ids, actionType, payload, bytes, as: { userId, by } })
    }, roomActionAnswerMs)
    if (typeof response === 'string') return { kind: response }
    const message = JSON.parse(response.text)
    return message.type === 'action_result'
      ? { kind: 'done', result: message.result }
      : failed(message.code, message.message)
  }
}
