/** A room's state under a handler, and a client's copy of it: for tests of what assignments do and what deltas say. */
import { expect } from 'bun:test'
import type { RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import { applyDelta } from '../../../src/features/rooms/engine/delta.ts'
import type { Turn } from '../../../src/features/rooms/engine/draft.ts'
import type { JsonRecord } from '../../../src/features/rooms/engine/json.ts'
import { LiveState } from '../../../src/features/rooms/engine/state.ts'

export const stateBytesMax = 100_000
export const clone = <T>(value: T): T => JSON.parse(JSON.stringify(value))

/** Runs a handler on a state; what it throws is thrown, and then nothing has changed. */
export function change(state: LiveState, handler: (state: RoomState) => void): RoomState {
  const turn: Turn = { isLive: true }
  const draft = state.draft(turn)
  try {
    handler(draft.state)
    state.commit(draft, state.prepare(draft))
  } finally {
    turn.isLive = false
  }
  return draft.state
}

/** A state and a client's copy of it, which knows nothing but what deltas and syncs say. */
export function watched(initial: JsonRecord = {}) {
  const state = new LiveState(clone(initial), stateBytesMax)
  let copy = clone(initial)
  return {
    state,
    change: (handler: (state: RoomState) => void) => change(state, handler),
    /** Sends the delta, and gives it; null for a sync. */
    tick(): JsonRecord | null {
      const text = state.takeDelta()
      if (text === null) copy = JSON.parse(state.toText())
      else applyDelta(copy, JSON.parse(text))
      expect(copy).toEqual(state.value)
      return text === null ? null : JSON.parse(text)
    },
  }
}

/** The code or the name of what is thrown. */
export function code(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name
  }
  return 'nothing thrown'
}
