/**
 * One room that is in memory: an actor. Owns the order of what happens to it (its own tasks first, then the inbox, one
 * at a time), its deadlines, its saves and its end. `command-processor` runs commands, `fanout` sends messages; `rooms`
 * drives the ticks, `saving` saves.
 */
import { playerViewBytes } from '../../../limits/rooms.ts'
import { ActionError } from './action-error.ts'
import { CommandProcessor, type Task } from './command-processor.ts'
import { type EngineCounts, Fanout } from './fanout.ts'
import type { Inbox } from './inbox.ts'
import type { Journal } from './journal.ts'
import type {
  RoomCommand,
  RoomDefinition,
  RoomKey,
  RoomLease,
  RoomSave,
  RoomsDeps,
  RoomView,
  ViewPage,
} from './ports.ts'
import { rejectCommand } from './responses.ts'
import type { RoomData } from './room-data.ts'

/** `failed`: it could not be created; `destroyed`: its state has expired. */
export type RoomEnd = 'hibernated' | 'released' | 'lost' | 'failed' | 'destroyed'

/** The engine around the room. */
export interface RoomWorld extends Pick<RoomsDeps, 'network' | 'clock' | 'elapsedMs' | 'log' | 'services'> {
  readonly counts: EngineCounts
  /** There is something to send or to save. */
  onDirty(room: Room): void
  /** The room has ended, and nothing of it may be used. `waiting` are commands that were not done. */
  onGone(room: Room, why: RoomEnd, waiting: readonly RoomCommand[]): void
}

export interface RoomParts {
  readonly key: RoomKey
  readonly definition: RoomDefinition
  readonly lease: RoomLease
  readonly contents: RoomData
  readonly journal: Journal
  readonly inbox: Inbox
}

/** A save, and the function to call when it is known what became of it. */
export interface BegunSave {
  readonly save: RoomSave
  readonly end: (became: 'saved' | 'failed' | 'fenced') => void
}

export class Room {
  private readonly fanout: Fanout
  private readonly conduct: CommandProcessor
  private state: 'open' | 'closing' | 'gone' = 'open'
  private isPumping = false
  /** The command whose handler was aborted; tasks continue after it. */
  private dropped: RoomCommand | null = null
  /** Since when there are no players, and when the room was last saved; monotonic. */
  private idleSinceMs: number | null = null
  private savedAtMs: number
  /** When `look` has work, in monotonic milliseconds. */
  dueAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly world: RoomWorld,
    private readonly parts: RoomParts,
  ) {
    const { network, clock, elapsedMs, log, services, counts } = world
    const { key, definition, contents, journal } = parts
    const shared = { key, contents, journal, network, counts }
    this.fanout = new Fanout({ ...shared, epoch: this.epoch })
    this.conduct = new CommandProcessor({
      ...shared,
      clock,
      elapsedMs,
      log,
      services,
      definition,
      fanout: this.fanout,
      mayGoOn: () => this.mayGoOn(),
      onMilestone: (kind, isDone) => this.passMilestone(kind, isDone),
      onChanged: () => this.world.onDirty(this),
      onIdle: () => this.pump(),
    })
    this.savedAtMs = elapsedMs()
  }

  get key(): RoomKey {
    return this.parts.key
  }

  get lease(): RoomLease {
    return this.parts.lease
  }

  get contents(): RoomData {
    return this.parts.contents
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

  /** To be called once. */
  begin(first: 'create' | 'destroy' | null): void {
    if (first) this.conduct.tasks.push({ kind: first })
    this.pump()
  }

  receive(command: RoomCommand): void {
    // These are about a socket, not about the room's state: they do not wait for a handler.
    if (command.type === 'slow' || command.type === 'drained') this.conduct.perform(command)
    else if (this.parts.inbox.push(command)) this.pump()
    else rejectCommand(this.world.network, command, 'RATE_LIMITED', 'The room has too much to do')
  }

  /** Runs timers, timeouts, expired graces and hibernation that are due. */
  look(): void {
    if (this.isGone || !this.mayGoOn()) return
    const nowMs = this.world.elapsedMs()
    const { startedAtMs } = this.conduct.runner
    if (startedAtMs !== null && nowMs - startedAtMs >= this.definition.actionTimeoutMs)
      this.conduct.runner.interrupt(new ActionError('ACTION_TIMEOUT', 'The action took too long'))
    if (this.state === 'open') {
      for (const timer of this.contents.timers.takeDue(this.world.clock.now())) this.addTask({ kind: 'timer', timer })
      this.endGrace(nowMs)
    }
    this.pump()
    if (this.isGone) return
    this.hibernate(nowMs)
  }

  /** Sends what the tick is for. */
  flush(): void {
    if (this.isGone || !this.mayGoOn()) return
    this.fanout.flush(this.world.elapsedMs())
    if (this.fanout.owesMembers) this.world.onDirty(this)
  }

  /** Whether changes are not saved yet, or a save is under way. */
  get isUnsaved(): boolean {
    return this.parts.journal.isUnsaved || this.parts.journal.isSaving
  }

  /** Whether the next save is to include this room. */
  get wantsSave(): boolean {
    const { journal, definition, contents } = this.parts
    if (this.isGone || journal.isSaving) return false
    if (journal.isRunningOut) return true
    const sinceMs = this.world.elapsedMs() - this.savedAtMs
    // An untouched room is saved now and then, or it would expire.
    if (!journal.isUnsaved) return sinceMs >= definition.stateTtlMs / 2
    const isWaitedFor = this.state === 'closing' || contents.players.present === 0
    return isWaitedFor || definition.durability === 'tick' || sinceMs >= definition.saveIntervalMs
  }

  /** A save of all there is. */
  beginSave(): BegunSave {
    const { contents, journal, lease, definition } = this.parts
    const nowMs = this.world.clock.now()
    const startedAtMs = this.world.elapsedMs()
    const form = journal.begin(contents)
    const wakeAtMs = contents.timers.earliestMs
    const save: RoomSave = {
      ...form,
      key: this.key,
      fence: lease.fence,
      metadata: contents.metadata.toText(),
      wakeAtMs,
      savedAtMs: nowMs,
      expiresAtMs: Math.max(nowMs, wakeAtMs ?? 0) + definition.stateTtlMs,
    }
    return {
      save,
      end: (became) => {
        if (this.isGone) return
        if (became === 'fenced') this.lose()
        else {
          journal[became](form)
          if (became === 'saved') this.savedAtMs = startedAtMs
          this.endWhenSettled()
          if (!this.isGone && (journal.isUnsaved || this.hasChanges)) this.world.onDirty(this)
        }
      },
    }
  }

  /** Takes no more commands, and ends as soon as everything is saved. */
  close(): void {
    if (this.state !== 'open') return
    this.state = 'closing'
    this.pump()
    this.endWhenSettled()
    if (!this.isGone) this.world.onDirty(this)
  }

  /** Aborts the running handler, so that the room can be saved without it. */
  cut(): void {
    if (!this.conduct.runner.isBusy) return
    this.dropped ??= this.conduct.undone
    this.conduct.cut()
    this.pump()
    this.endWhenSettled()
  }

  /** Another node may own the room: nothing more is sent or saved. */
  lose(): void {
    if (!this.isGone) this.end('lost')
  }

  /** An unexpected failure: the room restarts from its last save when it is needed next. */
  fail(error: unknown): void {
    this.world.log.error('room.crashed', { ...this.key, error })
    this.lose()
  }

  /** Releases cached texts and old results, and recomputes deadlines that depend on the wall clock. */
  tidy(): void {
    const { shared, server, players, results } = this.contents
    results.sweep(this.world.elapsedMs())
    shared.forgetText()
    server.forgetText()
    for (const { state } of players) state.forgetText()
    this.schedule()
  }

  view({ after, bytesMax }: ViewPage): RoomView {
    const { shared, server, metadata, players } = this.contents
    const following = [...players]
      .filter(({ userId }) => after === null || userId > after)
      .sort((one, other) => (one.userId < other.userId ? -1 : 1))
    let left = bytesMax - shared.sizeBytes - server.sizeBytes - metadata.sizeBytes
    const end = following.findIndex(({ state }, at) => {
      left -= state.sizeBytes + playerViewBytes
      return left < 0 && at > 0
    })
    const shown = end < 0 ? following : following.slice(0, end)
    return {
      key: this.key,
      epoch: this.epoch,
      sharedVersion: shared.version,
      shared: shared.toText(),
      server: server.toText(),
      metadata: metadata.toText(),
      occupancy: players.occupancy,
      players: shown.map(({ userId, connections, state }) => ({
        userId,
        connections: connections.size,
        state: state.toText(),
        version: state.version,
      })),
      isCut: shown.length < following.length,
      actions: [...this.conduct.recent],
    }
  }

  /** Processes queued work until a handler is asynchronous. */
  private pump(): void {
    if (this.isPumping) return
    this.isPumping = true
    try {
      while (!this.isGone && !this.conduct.runner.isBusy && this.mayGoOn() && this.doNext());
    } catch (error) {
      this.fail(error)
    }
    this.isPumping = false
    if (this.isGone) return
    if (this.contents.players.size > 0) this.idleSinceMs = null
    else this.idleSinceMs ??= this.world.elapsedMs()
    this.schedule()
  }

  /** False when the queues are empty. */
  private doNext(): boolean {
    const task = this.conduct.tasks.shift()
    if (task) {
      this.conduct.performTask(task)
      return true
    }
    const command = this.state === 'open' ? this.parts.inbox.shift() : undefined
    if (command) this.conduct.perform(command)
    return command !== undefined
  }

  private mayGoOn(): boolean {
    if (this.isGone) return false
    if (this.lease.isHeld()) return true
    this.lose()
    return false
  }

  private addTask(task: Task): void {
    this.conduct.tasks.push(task)
  }

  private endGrace(nowMs: number): void {
    const [player, sinceMs] = this.contents.players.longestAbsent() ?? [null, 0]
    if (!player || player.isLeaving || nowMs - sinceMs < this.definition.reconnectGraceMs) return
    player.isLeaving = true
    this.addTask({ kind: 'leave', player, reason: 'disconnected' })
  }

  private passMilestone(kind: 'create' | 'destroy', isDone: boolean): void {
    if (kind === 'destroy') this.end('destroyed')
    else if (!isDone) this.end('failed')
    else {
      // No client has seen an earlier state, and the room must be saved as created even if it never changes.
      const { shared, server, metadata } = this.contents
      for (const state of [shared, server, metadata]) state.takeDelta()
      this.parts.journal.addWhole()
    }
  }

  private get isQuiet(): boolean {
    return !this.conduct.runner.isBusy && this.conduct.tasks.length === 0
  }

  private get hasChanges(): boolean {
    const { shared, server, metadata, players } = this.contents
    if (this.fanout.isWaiting || shared.isChanged || server.isChanged || metadata.isChanged) return true
    for (const { state } of players) if (state.isChanged) return true
    return false
  }

  private get isSettled(): boolean {
    const { journal } = this.parts
    return this.isQuiet && !journal.isUnsaved && !journal.isSaving && !this.hasChanges
  }

  private endWhenSettled(): void {
    if (this.state === 'closing' && this.isSettled) this.end('released')
  }

  private hibernate(nowMs: number): void {
    if (this.state !== 'open' || this.idleSinceMs === null || this.parts.inbox.size > 0) return
    if (nowMs - this.idleSinceMs < this.definition.hibernateAfterMs || !this.isQuiet) return
    if (this.isSettled) this.end('hibernated')
    else this.world.onDirty(this)
  }

  private end(why: RoomEnd): void {
    this.state = 'gone'
    this.conduct.cut()
    const undone = this.dropped ?? this.conduct.undone
    this.world.onGone(this, why, [...(undone ? [undone] : []), ...this.parts.inbox.drain()])
  }

  private schedule(): void {
    const nowMs = this.world.elapsedMs()
    const { startedAtMs } = this.conduct.runner
    const { actionTimeoutMs, reconnectGraceMs, hibernateAfterMs } = this.definition
    let due = Number.POSITIVE_INFINITY
    if (startedAtMs !== null) due = startedAtMs + actionTimeoutMs
    const absent = this.contents.players.longestAbsent()
    if (absent && !absent[0].isLeaving) due = Math.min(due, absent[1] + reconnectGraceMs)
    const timerMs = this.contents.timers.nextDueMs
    if (timerMs !== null) due = Math.min(due, nowMs + timerMs - this.world.clock.now())
    if (this.idleSinceMs !== null) due = Math.min(due, this.idleSinceMs + hibernateAfterMs)
    this.dueAtMs = due
  }
}
