/** The state of a room under a handler, and a client's copy of it, for tests of assignments and deltas. */
import { expect } from 'bun:test'
import type { RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import { applyDelta } from '../../../src/features/rooms/engine/state/delta.ts'
import type { DraftOwner } from '../../../src/features/rooms/engine/state/draft.ts'
import type { JsonRecord } from '../../../src/features/rooms/engine/state/json.ts'
import { LiveState } from '../../../src/features/rooms/engine/state/state.ts'

export const stateBytesMax = 100_000
export const clone = <T>(value: T): T => JSON.parse(JSON.stringify(value))

/** Runs a handler on a state. Throws the error of the handler, after which the state is unchanged. */
export function change(state: LiveState, handler: (state: RoomState) => void): RoomState {
  const owner: DraftOwner = { isLive: true }
  const draft = state.draft(owner)
  try {
    handler(draft.state)
    state.commit(draft, state.prepare(draft))
  } finally {
    owner.isLive = false
  }
  return draft.state
}

/** A state and a client's copy of it, which is updated by deltas and syncs only. */
export function watched(initial: JsonRecord = {}) {
  const state = new LiveState(clone(initial), stateBytesMax)
  let copy = clone(initial)
  return {
    state,
    change: (handler: (state: RoomState) => void) => change(state, handler),
    /** Sends the delta and returns it; null for a sync. */
    tick(): JsonRecord | null {
      const text = state.takeDelta()
      if (text === null) copy = JSON.parse(state.toText())
      else applyDelta(copy, JSON.parse(text))
      expect(copy).toEqual(state.value)
      return text === null ? null : JSON.parse(text)
    },
  }
}

/** The code or the name of the error that a call throws. */
export function code(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name
  }
  return 'nothing thrown'
}
