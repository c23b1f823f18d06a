/**
 * Saves dirty rooms in one transaction, one transaction at a time. A save that fails is repeated
 * with the next tick, with all that has happened since.
 */
import type { Log } from '../../../base/log.ts'
import { roomSaveBytesMax, roomsPerSaveMax } from '../../../limits/rooms.ts'
import type { EngineCounts } from './fanout.ts'
import { type RoomStore, roomName } from './ports.ts'
import type { BegunSave, Room } from './room.ts'

export class Saving {
  private isBusy = false
  /** Rooms that have, or may have, something to save. */
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

  /** Begins to save as many of the rooms as fit in a transaction, unless one is under way. */
  save(): void {
    if (this.isBusy) return
    const begun: BegunSave[] = []
    let bytes = 0
    for (const room of this.unsaved) {
      if (!room.wantsSave) {
        if (!room.isUnsaved) this.unsaved.delete(room)
        continue
      }
      this.unsaved.delete(room)
      const one = beginSave(room)
      if (!one) continue
      begun.push(one)
      bytes += (one.save.snapshot?.length ?? 0) + (one.save.entry?.length ?? 0)
      if (begun.length >= roomsPerSaveMax || bytes >= roomSaveBytesMax) break
    }
    if (begun.length === 0) return
    this.isBusy = true
    void this.write(begun, bytes)
  }

  private async write(begun: readonly BegunSave[], bytes: number): Promise<void> {
    try {
      const refused = new Set((await this.store.save(begun.map(({ save }) => save))).map(roomName))
      this.isBusy = false
      this.counts.saves += begun.length - refused.size
      this.counts.savedBytes += bytes
      this.counts.fencedSaves += refused.size
      for (const { save, end } of begun) end(refused.has(roomName(save.key)) ? 'fenced' : 'saved')
    } catch (error) {
      this.isBusy = false
      this.counts.failedSaves += begun.length
      this.log.error('room.save_failed', { rooms: begun.length, error })
      for (const { end } of begun) end('failed')
    }
  }
}

function beginSave(room: Room): BegunSave | null {
  try {
    return room.beginSave()
  } catch (error) {
    room.fail(error)
    return null
  }
}
