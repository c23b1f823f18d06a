/**
 * One room in memory: an actor. Owns its mailbox (tasks of its own first, then commands, one at a time) and its
 * lifecycle: due work, hibernation and the end. `command-processor` processes commands, `fanout` sends messages,
 * `persistence` saves; `rooms` drives the ticks.
 */
import { CommandProcessor, type Task } from './command-processor.ts'
import type { Inbox } from './inbox.ts'
import { type EngineCounts, Fanout } from './messages/fanout.ts'
import { rejectOverload } from './messages/responses.ts'
import type { Journal } from './persistence/journal.ts'
import { type PendingSave, Persistence } from './persistence/persistence.ts'
import type { RoomData } from './persistence/room-data.ts'
import type {
  RoomCommand,
  RoomDefinition,
  RoomKey,
  RoomLease,
  RoomLoadReport,
  RoomsDeps,
  RoomView,
  ViewPage,
} from './ports.ts'
import { RoomLoad } from './room-load.ts'
import { viewRoom } from './room-view.ts'

/** `lost`: its lease ended; `failed`: it could not be created; `destroyed`: its state has expired. */
export type RoomEnd = 'hibernated' | 'released' | 'lost' | 'failed' | 'destroyed'

/** The engine around the room. */
export interface RoomWorld extends Pick<RoomsDeps, 'network' | 'clock' | 'elapsedMs' | 'log' | 'services'> {
  readonly counts: EngineCounts
  /** The room has something to send or to save. */
  onDirty(room: Room): void
  /** The room has ended and must not be used again. `waiting` are commands that were not processed. */
  onEnd(room: Room, why: RoomEnd, waiting: readonly RoomCommand[]): void
}

export interface RoomParts {
  readonly key: RoomKey
  readonly definition: RoomDefinition
  readonly lease: RoomLease
  readonly data: RoomData
  readonly journal: Journal
  readonly inbox: Inbox
}

export class Room {
  private readonly fanout: Fanout
  private readonly processor: CommandProcessor
  private readonly persistence: Persistence
  private readonly load: RoomLoad
  private readonly tasks: Task[] = []
  private state: 'open' | 'closing' | 'gone' = 'open'
  private isDraining = false
  /** The command whose handler was aborted; tasks continue after it. */
  private aborted: RoomCommand | null = null
  /** Since when the room has had no players, in monotonic milliseconds. */
  private idleSinceMs: number | null = null
  /** Monotonic time at which `runDueWork` has work. */
  dueAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly world: RoomWorld,
    private readonly parts: RoomParts,
  ) {
    this.load = new RoomLoad(world.elapsedMs)
    this.fanout = new Fanout({ ...world, ...parts, epoch: this.epoch })
    this.processor = new CommandProcessor({
      ...world,
      ...parts,
      fanout: this.fanout,
      scheduleFirst: (task) => this.tasks.unshift(task),
      stillOwned: () => this.stillOwned(),
      onMilestone: (kind, hasSucceeded) => this.passMilestone(kind, hasSucceeded),
      onChanged: () => this.world.onDirty(this),
      onIdle: () => this.drainQueue(),
    })
    this.persistence = new Persistence({ ...world, ...parts, fanout: this.fanout })
  }

  get key(): RoomKey {
    return this.parts.key
  }

  get lease(): RoomLease {
    return this.parts.lease
  }

  get data(): RoomData {
    return this.parts.data
  }

  get definition(): RoomDefinition {
    return this.parts.definition
  }

  get epoch(): string {
    return String(this.parts.lease.fence)
  }

  get isGone(): boolean {
    return this.state === 'gone'
  }

  /** Whether changes are not saved yet, or a save is under way. */
  get isUnsaved(): boolean {
    return this.persistence.isUnsaved
  }

  /** Whether the next save is to include this room. */
  get needsSave(): boolean {
    return !this.isGone && this.persistence.needsSave(this.state === 'closing')
  }

  /** Starts processing. Called once. */
  begin(first: 'create' | 'destroy' | null): void {
    if (first) this.tasks.push({ kind: first })
    this.drainQueue()
  }

  /** Queues a command, or rejects it with `RATE_LIMITED` where the queue is full. */
  receive(command: RoomCommand): void {
    if ('bytes' in command) this.load.received(this.world.elapsedMs())
    // These concern a socket, not the state of the room: they do not wait for a handler.
    if (command.type === 'slow' || command.type === 'drained') this.processor.perform(command)
    else if (this.parts.inbox.push(command)) this.drainQueue()
    else rejectOverload(this.world.network, command)
  }

  /** Runs timers, timeouts, expired reconnect graces and hibernation that are due. */
  runDueWork(): void {
    if (this.isGone || !this.stillOwned()) return
    const nowMs = this.world.elapsedMs()
    const { startedAtMs } = this.processor
    if (startedAtMs !== null && nowMs - startedAtMs >= this.definition.actionTimeoutMs) this.processor.timeOut()
    if (this.state === 'open') {
      for (const timer of this.data.timers.takeDue(this.world.clock.now())) this.tasks.push({ kind: 'timer', timer })
      this.expireReconnects(nowMs)
    }
    this.drainQueue()
    if (!this.isGone) this.hibernate(nowMs)
  }

  /** Sends the deltas and messages of a tick. */
  flush(): void {
    if (this.isGone || !this.stillOwned()) return
    this.load.tick(() => this.fanout.flush(this.world.elapsedMs()))
    if (this.fanout.isMembersSyncDue) this.world.onDirty(this)
  }

  /** Starts a save of everything that is not saved yet. */
  beginSave(): PendingSave {
    const { save, complete } = this.persistence.begin()
    return {
      save,
      complete: (outcome) => {
        if (this.isGone) return
        complete(outcome)
        if (outcome === 'fenced') {
          this.fence()
          return
        }
        this.endWhenSaved()
        if (!this.isGone && (this.parts.journal.isUnsaved || this.persistence.hasPendingChanges))
          this.world.onDirty(this)
      },
    }
  }

  /** Accepts no more commands, and ends as soon as everything is saved. */
  close(): void {
    if (this.state !== 'open') return
    this.state = 'closing'
    this.drainQueue()
    this.endWhenSaved()
    if (!this.isGone) this.world.onDirty(this)
  }

  /** Aborts the running handler, so that the room can be saved without it. */
  abortHandler(): void {
    if (!this.processor.isBusy) return
    this.aborted ??= this.processor.unfinished
    this.processor.abortHandler()
    this.drainQueue()
    this.endWhenSaved()
  }

  /** Ends the room because another node may own it: nothing more is sent or saved. */
  fence(): void {
    if (!this.isGone) this.end('lost')
  }

  /** Internal error: drops the room; the next join reloads it from the last save. */
  crash(error: unknown): void {
    this.world.log.error('room.crashed', { ...this.key, error })
    this.fence()
  }

  /** Releases cached texts and old results, and recomputes deadlines that depend on the wall clock. */
  compact(): void {
    const { shared, server, players, results } = this.data
    results.sweep(this.world.elapsedMs())
    shared.forgetText()
    server.forgetText()
    for (const { state } of players) state.forgetText()
    this.schedule()
  }

  /** A page of the room for administrators. */
  view(page: ViewPage): RoomView {
    const { key, epoch, loadReport } = this
    return viewRoom(this.data, { key, epoch, load: loadReport, recent: this.processor.recent }, page)
  }

  get loadReport(): RoomLoadReport {
    const { shared, server, metadata, players } = this.data
    let stateBytes = shared.sizeBytes + server.sizeBytes + metadata.sizeBytes
    for (const { state } of players) stateBytes += state.sizeBytes
    return { ...this.load.report(), stateBytes }
  }

  /** Processes queued work until a handler is asynchronous. */
  private drainQueue(): void {
    if (this.isDraining) return
    this.isDraining = true
    try {
      while (!this.isGone && !this.processor.isBusy && this.stillOwned() && this.processNext());
    } catch (error) {
      this.crash(error)
    }
    this.isDraining = false
    if (this.isGone) return
    if (this.data.players.size > 0) this.idleSinceMs = null
    else this.idleSinceMs ??= this.world.elapsedMs()
    this.schedule()
  }

  /** False when the queues are empty. */
  private processNext(): boolean {
    const task = this.tasks.shift()
    if (task) {
      this.processor.performTask(task)
      return true
    }
    const command = this.state === 'open' ? this.parts.inbox.shift() : undefined
    if (command) this.processor.perform(command)
    return command !== undefined
  }

  /** Ends the room where the lease is not valid any more. */
  private stillOwned(): boolean {
    if (this.isGone) return false
    if (this.lease.isValid()) return true
    this.fence()
    return false
  }

  private expireReconnects(nowMs: number): void {
    const [player, sinceMs] = this.data.players.longestAbsent() ?? [null, 0]
    if (!player || player.isLeaving || nowMs - sinceMs < this.definition.reconnectGraceMs) return
    player.isLeaving = true
    this.tasks.push({ kind: 'leave', player, reason: 'disconnected' })
  }

  private passMilestone(kind: 'create' | 'destroy', hasSucceeded: boolean): void {
    if (kind === 'destroy') this.end('destroyed')
    else if (!hasSucceeded) this.end('failed')
    else {
      // No client has seen an earlier state, and the room must be saved as created even if it never changes.
      const { shared, server, metadata } = this.data
      for (const state of [shared, server, metadata]) state.takeDelta()
      this.parts.journal.requireSnapshot()
    }
  }

  private get isIdle(): boolean {
    return !this.processor.isBusy && this.tasks.length === 0
  }

  private get canEnd(): boolean {
    return this.isIdle && this.persistence.isFullySaved
  }

  private endWhenSaved(): void {
    if (this.state === 'closing' && this.canEnd) this.end('released')
  }

  private hibernate(nowMs: number): void {
    if (this.state !== 'open' || this.idleSinceMs === null || this.parts.inbox.size > 0) return
    if (nowMs - this.idleSinceMs < this.definition.hibernateAfterMs || !this.isIdle) return
    if (this.canEnd) this.end('hibernated')
    else this.world.onDirty(this)
  }

  private end(why: RoomEnd): void {
    this.state = 'gone'
    this.processor.abortHandler()
    const unfinished = this.aborted ?? this.processor.unfinished
    this.world.onEnd(this, why, [...(unfinished ? [unfinished] : []), ...this.parts.inbox.drain()])
  }

  private schedule(): void {
    const { startedAtMs } = this.processor
    const { actionTimeoutMs, reconnectGraceMs, hibernateAfterMs } = this.definition
    let due = Number.POSITIVE_INFINITY
    if (startedAtMs !== null) due = startedAtMs + actionTimeoutMs
    const absent = this.data.players.longestAbsent()
    if (absent && !absent[0].isLeaving) due = Math.min(due, absent[1] + reconnectGraceMs)
    const timerMs = this.data.timers.nextDueMs
    if (timerMs !== null) due = Math.min(due, this.world.elapsedMs() + timerMs - this.world.clock.now())
    if (this.idleSinceMs !== null) due = Math.min(due, this.idleSinceMs + hibernateAfterMs)
    this.dueAtMs = due
  }
}
