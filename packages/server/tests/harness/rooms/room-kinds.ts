/** Rooms with actions for tests: they change state, send messages, fail, wait, and assign invalid values. */
import type { Client } from 'plinth-client'
import type { Room, RoomPlayer } from '../../../src/config/define.ts'
import { open } from '../config.ts'

/** Gates that tests open for waiting handlers. */
const gates = new Map<string, PromiseWithResolvers<void>>()
export const gateOf = (name: string): PromiseWithResolvers<void> => {
  const gate = gates.get(name) ?? Promise.withResolvers<void>()
  gates.set(name, gate)
  return gate
}
/** Objects that handlers have kept, for use after the handler has ended. */
interface Kept extends Pick<Room, 'db' | 'push'> {
  readonly room: Room
  readonly player: RoomPlayer
  readonly scores: { insert(row: object): Promise<unknown> }
}
export const kept = new Map<string, Kept>()

/** A configuration of which handlers know the type. */
interface Tables {
  readonly databases: {
    readonly shared: {
      readonly tables: { readonly scores: { readonly schema: { title: { readonly type: 'string' } } } }
    }
  }
}
type TypedRoom = Room<Client<Tables>['db']>

interface TransactionOfScores {
  readonly scores: { get(id: string): Promise<{ title: string }>; update(id: string, data: object): void }
}

const actions = {
  echo: (_room: Room, _player: RoomPlayer, payload: unknown) => payload,
  nothing() {},
  giveFunction: (room: Room) => room.broadcast,
  assign(room: Room, _player: RoomPlayer, { path, value }: { path: string[]; value: unknown }) {
    let at = room.shared
    for (const key of path.slice(0, -1)) at = at[key] ??= {}
    at[path.at(-1) as string] = value
  },
  own(_room: Room, player: RoomPlayer, { key, value }: { key: string; value: unknown }) {
    player.state[key] = value
  },
  secret(room: Room, _player: RoomPlayer, value: unknown) {
    room.server.secret = value
    return room.server.secret
  },
  count(room: Room) {
    room.server.count = (room.server.count ?? 0) + 1
    return room.server.count
  },
  fail(room: Room, player: RoomPlayer, code: string) {
    room.shared.trace = 'left'
    room.server.trace = 'left'
    player.state.trace = 'left'
    room.metadata = { trace: 'left' }
    room.broadcast('trace')
    player.send('trace')
    player.kick()
    room.after(0, 'mark', 'trace')
    throw new Error(code)
  },
  reject: (room: Room) => {
    room.shared.trace = 'left'
    return Promise.reject(new Error('rejected'))
  },
  async slow(room: Room, player: RoomPlayer, name: string) {
    kept.set(name, { room, player, db: room.db, push: room.push, scores: room.db('shared').scores })
    room.shared.slow = name
    await gateOf(name).promise
    room.shared.slow = `${name} done`
    return 'done'
  },
  poison(room: Room, _player: RoomPlayer, kind: keyof typeof poisons) {
    room.shared.poison = poisons[kind]()
  },
  key(room: Room, _player: RoomPlayer, key: string) {
    room.shared[key] = { x: 1 }
  },
  send(room: Room, player: RoomPlayer, { to, except }: { to?: string; except?: string }) {
    if (to === undefined) room.broadcast('greeting', { by: player.id }, except === undefined ? {} : { except })
    else room.players.get(to)?.send('greeting', { by: player.id })
  },
  kick(room: Room, _player: RoomPlayer, id: string) {
    room.players.get(id)?.kick()
  },
  who: (room: Room) => [...room.players].map(({ id }) => id).toSorted(),
  later(room: Room, _player: RoomPlayer, { ms, data }: { ms: number; data: unknown }) {
    room.after(ms, 'mark', data)
  },
  async record(room: Room, player: RoomPlayer, title: string) {
    const made = (await room.db.insert('shared.scores', { title, by: player.id })) as { id: string }
    await room.db.update('shared.scores', made.id, { title: `${title}!` })
    const { items } = (await room.db.list('shared.scores', { filter: [['by', '==', player.id]] })) as {
      items: object[]
    }
    return { made: await room.db.get('shared.scores', made.id), items: items.length }
  },
  async tables(room: Room, player: RoomPlayer, title: string) {
    const { scores } = room.db('shared')
    const { id } = await scores.insert({ title, by: player.id })
    await scores.update(id, { title: `${title}!` })
    await room.db().batch((tx: { scores: { insert(row: object): void } }) => tx.scores.insert({ title, by: 'batch' }))
    await room.db().transaction(async (tx: TransactionOfScores) => {
      const score = await tx.scores.get(id)
      tx.scores.update(id, { title: `${score.title}?` })
    })
    const { items } = await scores.where('by', '==', player.id).list()
    await scores.delete(id)
    return { items, left: await scores.find(id) }
  },
  async typed(room: TypedRoom, _player: RoomPlayer, title: string) {
    const stored: string | null = (await room.db().scores.insert({ title })).title
    return stored
  },
  badTable: (room: Room) => room.db('shared').scores.insert({ nonsense: 1 }),
  async badRecord(room: Room) {
    await room.db.insert('shared.scores', { nonsense: 1 })
  },
  push: (room: Room, player: RoomPlayer) => room.push.send(player.id, { title: 'hello' }),
}

class Instance {}
export const poisons = {
  function: () => () => 1,
  symbol: () => Symbol('s'),
  nan: () => Number.NaN,
  infinite: () => Number.POSITIVE_INFINITY,
  date: () => new Date(0),
  map: () => new Map(),
  instance: () => new Instance(),
  bigint: () => 1n,
  cycle: () => {
    const value: Record<string, unknown> = {}
    value.self = value
    return value
  },
  prototype: () => JSON.parse('{"__proto__":{"isAdmin":true}}'),
  constructor: () => ({ constructor: { prototype: 1 } }),
}

const shared = {
  access: {
    join: true,
    action: (_: unknown, __: string, actionType: string, payload: unknown) =>
      !(actionType === 'echo' && payload === 'forbidden'),
    signal: (_: unknown, __: string, event: string) => event !== 'forbidden',
  },
  actions,
  timers: {
    mark(room: Room, data: unknown) {
      room.shared.marks = [...(room.shared.marks ?? []), data]
    },
  },
}

export const roomKinds = {
  databases: {
    shared: { tables: { scores: { schema: { title: { type: 'string' }, by: { type: 'string' } }, access: open } } },
  },
  rooms: {
    game: { ...shared, messageRate: 1000 },
    small: { ...shared, messageRate: 1000, maxStateSize: 1000 },
    strict: shared,
    plain: { access: { join: true }, messageRate: 1000 },
  },
}
