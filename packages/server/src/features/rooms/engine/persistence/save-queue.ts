/**
 * Saves dirty rooms, many in one transaction and one transaction at a time. A save that fails is repeated with the next
 * tick, together with later changes.
 */
import type { Log } from '../../../../base/log.ts'
import { roomSaveBytesMax, roomsPerSaveMax } from '../../../../limits/rooms.ts'
import type { EngineCounts } from '../messages/fanout.ts'
import { type RoomStore, roomName } from '../ports.ts'
import type { Room } from '../room.ts'
import type { PendingSave } from './persistence.ts'

export class SaveQueue {
  private isBusy = false
  /** Rooms that may have something to save. */
  private readonly unsaved = new Set<Room>()

  constructor(
    private readonly store: RoomStore,
    private readonly counts: EngineCounts,
    private readonly log: Log,
  ) {}

  add(room: Room): void {
    this.unsaved.add(room)
  }

  delete(room: Room): void {
    this.unsaved.delete(room)
  }

  /** Starts to save as many rooms as fit in a transaction, unless a transaction is under way. */
  flush(): void {
    if (this.isBusy) return
    const pending: PendingSave[] = []
    let bytes = 0
    for (const room of this.unsaved) {
      if (!room.needsSave) {
        if (!room.isUnsaved) this.unsaved.delete(room)
        continue
      }
      this.unsaved.delete(room)
      const begun = beginSave(room)
      if (!begun) continue
      pending.push(begun)
      bytes += (begun.save.snapshot?.length ?? 0) + (begun.save.entry?.length ?? 0)
      if (pending.length >= roomsPerSaveMax || bytes >= roomSaveBytesMax) break
    }
    if (pending.length === 0) return
    this.isBusy = true
    void this.write(pending, bytes)
  }

  private async write(pending: readonly PendingSave[], bytes: number): Promise<void> {
    try {
      const fenced = new Set((await this.store.save(pending.map(({ save }) => save))).map(roomName))
      this.isBusy = false
      this.counts.saves += pending.length - fenced.size
      this.counts.savedBytes += bytes
      this.counts.fencedSaves += fenced.size
      for (const { save, complete } of pending) complete(fenced.has(roomName(save.key)) ? 'fenced' : 'saved')
    } catch (error) {
      this.isBusy = false
      this.counts.failedSaves += pending.length
      this.log.error('room.save_failed', { rooms: pending.length, error })
      for (const { complete } of pending) complete('failed')
    }
  }
}

function beginSave(room: Room): PendingSave | null {
  try {
    return room.beginSave()
  } catch (error) {
    room.crash(error)
    return null
  }
}
