/**
 * The unsaved changes of a room, and the form of its next save: a journal entry with the changes, or a snapshot where
 * that is shorter. Reserves versions ahead of use; `persistence` decides when to save.
 */
import { roomJournalBytesMin, roomVersionsReserved } from '../../../../limits/rooms.ts'
import type { LogItem, RoomData } from './room-data.ts'

export interface SaveForm {
  readonly snapshot: string | null
  readonly entry: string | null
  readonly seq: number
  readonly versionBound: number
}

export class Journal {
  /** Items as JSON, separated by commas. */
  private items = ''
  /** Items of the save that is under way; null without one. */
  private inFlight: string | null = null
  /** The first save under a fence is a snapshot, as is a save of changes that paths cannot express. */
  private needsSnapshot = true
  private snapshotBytes = 0
  private journalBytes = 0
  private seq = 0
  private hasUnsaved = false
  private highest: number

  constructor(
    /** Versions up to this one are reserved in the store. */
    private bound: number,
    highest: number,
  ) {
    this.highest = highest
  }

  /** Whether changes are not saved yet. */
  get isUnsaved(): boolean {
    return this.hasUnsaved
  }

  get isSaving(): boolean {
    return this.inFlight !== null
  }

  /** Whether more than half of the reserved versions are used. */
  get isRunningOut(): boolean {
    return this.bound - this.highest < roomVersionsReserved / 2
  }

  /** The highest version of any state so far. */
  get highestVersion(): number {
    return this.highest
  }

  /** Whether clients may see a version: only after a save has reserved it. */
  mayUse(version: number): boolean {
    return version <= this.bound
  }

  use(version: number): void {
    this.highest = Math.max(this.highest, version)
  }

  /**
   * A version that no state of the room has had, so that no client mistakes a state that starts with it for a known
   * one. The highest one in use where no further version is reserved.
   */
  takeVersion(): number {
    if (this.mayUse(this.highest + 1)) this.highest += 1
    return this.highest
  }

  add(item: LogItem): void {
    this.addText(JSON.stringify(item))
  }

  /** Adds an item that is JSON already. */
  addText(item: string): void {
    this.hasUnsaved = true
    if (this.needsSnapshot) return
    this.items = joined(this.items, item)
    if (this.items.length > Math.max(roomJournalBytesMin, this.snapshotBytes)) this.requireSnapshot()
  }

  /** Makes the next save a snapshot, because paths cannot express a change. */
  requireSnapshot(): void {
    this.hasUnsaved = true
    this.needsSnapshot = true
    this.items = ''
  }

  /** Starts a save of everything that is not saved yet; must be followed by `saved` or `failed`. */
  begin(data: RoomData): SaveForm {
    const isGrown = this.journalBytes + this.items.length > Math.max(roomJournalBytesMin, this.snapshotBytes)
    const isSnapshot = this.needsSnapshot || isGrown || data.isChanged
    const snapshot = isSnapshot ? data.toSnapshot() : null
    const entry = isSnapshot || this.items === '' ? null : `[${this.items}]`
    this.inFlight = this.items
    this.items = ''
    this.hasUnsaved = false
    this.needsSnapshot = false
    return { snapshot, entry, seq: this.seq + 1, versionBound: this.highest + roomVersionsReserved }
  }

  saved({ snapshot, entry, versionBound }: SaveForm): void {
    this.inFlight = null
    this.bound = Math.max(this.bound, versionBound)
    this.seq += 1
    if (snapshot !== null) {
      this.snapshotBytes = snapshot.length
      this.journalBytes = 0
    } else this.journalBytes += entry?.length ?? 0
  }

  /** The outcome is unknown: the next save repeats these items and adds later ones. */
  failed({ snapshot }: SaveForm): void {
    if (snapshot !== null || this.needsSnapshot) this.requireSnapshot()
    else if (this.inFlight) this.items = joined(this.inFlight, this.items)
    this.inFlight = null
    this.hasUnsaved = true
  }
}

const joined = (before: string, after: string): string =>
  before === '' || after === '' ? before + after : `${before},${after}`
