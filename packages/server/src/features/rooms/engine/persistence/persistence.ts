/**
 * Persistence of one room: whether it needs a save, and the save itself. `journal` chooses its form, `save-queue`
 * writes the saves of many rooms in one transaction.
 */
import type { Fanout } from '../messages/fanout.ts'
import type { RoomDefinition, RoomKey, RoomLease, RoomSave, RoomsDeps } from '../ports.ts'
import type { Journal } from './journal.ts'
import type { RoomData } from './room-data.ts'

/** `fenced`: refused, because a later owner has loaded the room. */
export type SaveOutcome = 'saved' | 'failed' | 'fenced'

/** A save under way. `complete` must be called with its outcome. */
export interface PendingSave {
  readonly save: RoomSave
  readonly complete: (outcome: SaveOutcome) => void
}

export interface PersistenceDeps extends Pick<RoomsDeps, 'clock' | 'elapsedMs'> {
  readonly key: RoomKey
  readonly lease: RoomLease
  readonly definition: RoomDefinition
  readonly data: RoomData
  readonly journal: Journal
  readonly fanout: Fanout
}

export class Persistence {
  /** Start of the last save that succeeded, in monotonic milliseconds. */
  private savedAtMs: number

  constructor(private readonly deps: PersistenceDeps) {
    this.savedAtMs = deps.elapsedMs()
  }

  /** Whether changes are not saved yet, or a save is under way. */
  get isUnsaved(): boolean {
    return this.deps.journal.isUnsaved || this.deps.journal.isSaving
  }

  /** Whether there are changes that have not become deltas or messages yet. */
  get hasPendingChanges(): boolean {
    return this.deps.fanout.isWaiting || this.deps.data.isChanged
  }

  get isFullySaved(): boolean {
    return !this.isUnsaved && !this.hasPendingChanges
  }

  /** Whether the next save is to include this room. */
  needsSave(isClosing: boolean): boolean {
    const { journal, definition, data, elapsedMs } = this.deps
    if (journal.isSaving) return false
    if (journal.isRunningOut) return true
    const sinceMs = elapsedMs() - this.savedAtMs
    // An unchanged room is saved now and then, so that it does not expire while it is in memory.
    if (!journal.isUnsaved) return sinceMs >= definition.stateTtlMs / 2
    const isUrgent = isClosing || data.players.present === 0
    return isUrgent || definition.durability === 'tick' || sinceMs >= definition.saveIntervalMs
  }

  /** Starts a save of everything that is not saved yet. */
  begin(): PendingSave {
    const { key, data, journal, lease, definition, clock, elapsedMs } = this.deps
    const nowMs = clock.now()
    const startedAtMs = elapsedMs()
    const form = journal.begin(data)
    const wakeAtMs = data.timers.earliestMs
    const save: RoomSave = {
      ...form,
      key,
      fence: lease.fence,
      metadata: data.metadata.toText(),
      wakeAtMs,
      savedAtMs: nowMs,
      expiresAtMs: Math.max(nowMs, wakeAtMs ?? 0) + definition.stateTtlMs,
    }
    return {
      save,
      complete: (outcome) => {
        if (outcome === 'fenced') return
        journal[outcome](form)
        if (outcome === 'saved') this.savedAtMs = startedAtMs
      },
    }
  }
}
