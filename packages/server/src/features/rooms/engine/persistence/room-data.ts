/**
 * The data of a room, and its saved form: a snapshot and a journal of the changes since. Reads and writes that form;
 * `journal` decides which of the two a save writes.
 */
import type { Auth } from '../../../../access/caller.ts'
import { roomMetadataBytesMax } from '../../../../limits/rooms.ts'
import { Player, Players } from '../players.ts'
import type { SavedRoom } from '../ports.ts'
import { Results } from '../results.ts'
import { applyDelta, type Delta } from '../state/delta.ts'
import type { JsonRecord } from '../state/json.ts'
import { LiveState } from '../state/state.ts'
import { type RoomTimer, Timers } from '../timers.ts'

export class RoomData {
  readonly players = new Players()
  readonly timers = new Timers()
  readonly results = new Results()
  readonly shared: LiveState
  readonly server: LiveState
  readonly metadata: LiveState

  constructor(
    private readonly stateBytesMax: number,
    /** At least every version that clients of an earlier owner may have seen. */
    private readonly firstVersion: number,
    { shared, server, metadata }: Pick<Snapshot, 'shared' | 'server' | 'metadata'> = {
      shared: {},
      server: {},
      metadata: {},
    },
  ) {
    this.shared = new LiveState(shared, stateBytesMax, firstVersion)
    this.server = new LiveState(server, stateBytesMax)
    this.metadata = new LiveState(metadata, roomMetadataBytesMax)
  }

  /** A player with an empty state, or with the restored one. */
  createPlayer(userId: string, auth: Auth, state: JsonRecord = {}, version = this.firstVersion): Player {
    return new Player(userId, auth, new LiveState(state, this.stateBytesMax, version))
  }

  /** Whether a state has changes that have not become deltas yet. */
  get isChanged(): boolean {
    if (this.shared.isChanged || this.server.isChanged || this.metadata.isChanged) return true
    for (const { state } of this.players) if (state.isChanged) return true
    return false
  }

  toSnapshot(): string {
    const players: string[] = []
    for (const { userId, auth, state, isJoining } of this.players)
      if (!isJoining)
        players.push(`${JSON.stringify(userId)}:{"auth":${JSON.stringify(auth)},"state":${state.toText()}}`)
    return (
      `{"shared":${this.shared.toText()},"server":${this.server.toText()},"metadata":${this.metadata.toText()},` +
      `"players":{${players.join(',')}},"results":${this.results.toText()},` +
      `"timers":${JSON.stringify([...this.timers.all()])}}`
    )
  }
}

interface Snapshot {
  shared: JsonRecord
  server: JsonRecord
  metadata: JsonRecord
  /** A map, since an id may equal the name of an inherited property. */
  players: Map<string, { auth: Auth; state: JsonRecord }>
  timers: RoomTimer[]
  results: (readonly [userId: string, requestId: string, body: object])[]
}

/** A change. A journal entry is a list of changes in the order in which they happened. */
export type LogItem =
  | readonly ['shared' | 'server' | 'metadata', Delta]
  | readonly ['player', userId: string, Delta]
  | readonly ['join', userId: string, auth: Auth, state: JsonRecord]
  | readonly ['leave', userId: string]
  | readonly ['result', userId: string, requestId: string, body: object]
  | readonly ['timer', RoomTimer]
  | readonly ['done', timerId: number]

/** Restores a saved room. Reconnect graces of players and ages of results begin at `nowMs`. */
export function readRoomData(saved: SavedRoom, stateBytesMax: number, nowMs: number): RoomData {
  const snapshot = readSnapshot(saved)
  const data = new RoomData(stateBytesMax, saved.versionBound, snapshot)
  for (const [userId, { auth, state }] of snapshot.players) {
    const player = data.createPlayer(userId, auth, state)
    data.players.add(player)
    data.players.awaitReturn(player, nowMs)
  }
  for (const timer of snapshot.timers) data.timers.add(timer)
  for (const [userId, requestId, body] of snapshot.results)
    data.results.keep(userId, requestId, JSON.stringify(body), nowMs)
  return data
}

function readSnapshot({ snapshot: text, journal }: SavedRoom): Snapshot {
  const stored = text
    ? JSON.parse(text)
    : { shared: {}, server: {}, metadata: {}, players: {}, timers: [], results: [] }
  const snapshot: Snapshot = { ...stored, players: new Map(Object.entries(stored.players)) }
  for (const entry of journal) for (const item of JSON.parse(entry) as LogItem[]) replay(snapshot, item)
  return snapshot
}

function replay(snapshot: Snapshot, item: LogItem): void {
  switch (item[0]) {
    case 'shared':
    case 'server':
    case 'metadata':
      applyDelta(snapshot[item[0]], item[1])
      return
    case 'player': {
      const player = snapshot.players.get(item[1])
      if (player) applyDelta(player.state, item[2])
      return
    }
    case 'join':
      snapshot.players.set(item[1], { auth: item[2], state: item[3] })
      return
    case 'leave':
      snapshot.players.delete(item[1])
      return
    case 'result':
      snapshot.results.push([item[1], item[2], item[3]])
      return
    case 'timer':
      snapshot.timers.push(item[1])
      return
    case 'done':
      snapshot.timers = snapshot.timers.filter(({ id }) => id !== item[1])
  }
}
