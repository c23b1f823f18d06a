/**
 * What of a room is not saved yet, and in which form it will be: as an entry with what has happened, or as a snapshot
 * when that is shorter. Owns the bound of versions; `saving` decides when to save.
 */
import { roomJournalBytesMin, roomVersionsReserved } from '../../../limits/rooms.ts'
import type { LogItem, RoomData } from './room-data.ts'

export interface SaveForm {
  readonly snapshot: string | null
  readonly entry: string | null
  readonly seq: number
  readonly versionBound: number
}

export class Journal {
  private items: string[] = []
  private itemsBytes = 0
  /** Items of the save that is under way. */
  private inFlight: { items: string[]; bytes: number } | null = null
  /** The first save under a fence is a snapshot, as is one of changes that paths cannot express. */
  private needsSnapshot = true
  private snapshotBytes = 0
  private journalBytes = 0
  private seq = 0
  private isTouched = false
  private highest: number

  constructor(
    /** Versions up to here are reserved in the store. */
    private bound: number,
    highest: number,
  ) {
    this.highest = highest
  }

  /** Something has changed that is not saved. */
  get isUnsaved(): boolean {
    return this.isTouched
  }

  get isSaving(): boolean {
    return this.inFlight !== null
  }

  /** Most of the reserved versions are used up. */
  get isRunningOut(): boolean {
    return this.bound - this.highest < roomVersionsReserved / 2
  }

  /** The highest version of any state so far. */
  get highestVersion(): number {
    return this.highest
  }

  /** Whether a version may be shown to clients; it may once a save has reserved it. */
  mayUse(version: number): boolean {
    return version <= this.bound
  }

  use(version: number): void {
    this.highest = Math.max(this.highest, version)
  }

  /**
   * A version that no state of the room has had, so that no client mistakes a state that begins with it for a known
   * one; the
   * highest there was where no other may be shown.
   */
  takeVersion(): number {
    if (this.mayUse(this.highest + 1)) this.highest += 1
    return this.highest
  }

  add(item: LogItem): void {
    this.addText(JSON.stringify(item))
  }

  /** An item that is JSON already. */
  addText(item: string): void {
    this.isTouched = true
    if (this.needsSnapshot) return
    this.items.push(item)
    this.itemsBytes += item.length
    if (this.itemsBytes > Math.max(roomJournalBytesMin, this.snapshotBytes)) this.addWhole()
  }

  /** A state has changed in a way that only a snapshot can express. */
  addWhole(): void {
    this.isTouched = true
    this.needsSnapshot = true
    this.items = []
    this.itemsBytes = 0
  }

  /** The form of a save of all there is; must be followed by `saved` or `failed`. */
  begin(contents: RoomData): SaveForm {
    const isGrown = this.journalBytes + this.itemsBytes > Math.max(roomJournalBytesMin, this.snapshotBytes)
    const isWhole = this.needsSnapshot || isGrown || hasChanges(contents)
    const snapshot = isWhole ? contents.toSnapshot() : null
    const entry = isWhole || this.items.length === 0 ? null : `[${this.items.join(',')}]`
    this.inFlight = { items: this.items, bytes: this.itemsBytes }
    this.items = []
    this.itemsBytes = 0
    this.isTouched = false
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
    if (snapshot !== null || this.needsSnapshot) this.addWhole()
    else if (this.inFlight) {
      this.items = [...this.inFlight.items, ...this.items]
      this.itemsBytes += this.inFlight.bytes
    }
    this.inFlight = null
    this.isTouched = true
  }
}

/** Changes that have not become deltas yet. */
const hasChanges = ({ shared, server, metadata, players }: RoomData): boolean =>
  shared.isChanged || server.isChanged || metadata.isChanged || [...players].some(({ state }) => state.isChanged)
