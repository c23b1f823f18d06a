/**
 * Parses and validates the configuration section `rooms`. Its types for users are in `define-rooms` and `room-code`.
 */
import { z } from 'zod'
import type { Auth } from '../../../access/caller.ts'
import { parseByteSize } from '../../../base/text/bytes.ts'
import { parseDuration } from '../../../base/text/duration.ts'
import {
  roomActionTimeoutMs,
  roomActionTimeoutMsMax,
  roomHibernateAfterMs,
  roomMessageRate,
  roomMessageRateMax,
  roomPlayers,
  roomPlayersMax,
  roomReconnectGraceMs,
  roomSaveIntervalMs,
  roomStateBytes,
  roomStateBytesMax,
  roomStateTtlMs,
} from '../../../limits/rooms.ts'
import { socketAuthTimeoutMs } from '../../../limits/sockets.ts'
import type { ConfigIssue } from '../../issues.ts'
import { findNameMistake } from '../../names.ts'
import { isFunction, membersOf, parsedWith, strictObject } from '../../shape-parts.ts'
import type { RoomCode } from './room-code.ts'

type Rule<Args extends unknown[]> = boolean | ((auth: Auth | null, roomId: string, ...args: Args) => unknown)

/** Access rules; undefined for a rule that is not configured. Only `true` allows. */
export interface RoomAccess {
  readonly join: Rule<[]> | undefined
  readonly action: Rule<[actionType: string, payload: unknown]> | undefined
  readonly signal: Rule<[event: string, payload: unknown]> | undefined
  readonly metadata: Rule<[]> | undefined
}

/** A namespace of rooms. Times in milliseconds, sizes in bytes, `messageRate` in messages per second. */
export interface RoomNamespace {
  readonly name: string
  readonly code: RoomCode
  readonly access: RoomAccess
  readonly hasPublicMetadata: boolean
  readonly maxPlayers: number
  readonly maxStateBytes: number
  readonly authTimeoutMs: number
  readonly actionTimeoutMs: number
  readonly reconnectGraceMs: number
  readonly hibernateAfterMs: number
  readonly saveIntervalMs: number
  readonly stateTtlMs: number
  readonly messageRate: number
  readonly durability: 'tick' | 'interval'
}

const functionShape = <F>() => z.custom<F>(isFunction, 'must be a function').optional()

const ruleShape = <Args extends unknown[]>() =>
  z
    .custom<Rule<Args>>((value) => typeof value === 'boolean' || isFunction(value), 'must be true, false or a function')
    .optional()

const duration = parsedWith(parseDuration)

/** A timeout with a maximum; it cannot be disabled. */
const timeout = (mostMs: number) =>
  duration.refine((ms) => ms <= mostMs, `must be at most ${mostMs / 1000} seconds`).optional()

const stateSize = z
  .union([z.int().min(1), parsedWith(parseByteSize)], { error: 'must be a size such as "1mb", or a number of bytes' })
  .refine((bytes) => bytes <= roomStateBytesMax, 'must be at most 10mb')
  .optional()

const handlersShape = <T>() => z.record(z.string(), z.custom<T>(isFunction, 'must be a function')).optional()

const roomShape = strictObject({
  access: strictObject({
    join: ruleShape<[]>(),
    action: ruleShape<[string, unknown]>(),
    signal: ruleShape<[string, unknown]>(),
    metadata: ruleShape<[]>(),
  }).prefault({}),
  public: strictObject({ metadata: z.boolean().default(false) }).prefault({}),
  maxPlayers: z.int().min(1).max(roomPlayersMax).default(roomPlayers),
  maxStateSize: stateSize,
  authTimeout: timeout(roomActionTimeoutMsMax),
  actionTimeout: timeout(roomActionTimeoutMsMax),
  reconnectGrace: z.union([z.literal(0), duration], { error: 'must be a duration such as "30s", or 0' }).optional(),
  hibernateAfter: duration.optional(),
  saveInterval: duration.optional(),
  stateTtl: duration.optional(),
  messageRate: z.int().min(1).max(roomMessageRateMax).default(roomMessageRate),
  durability: z.enum(['tick', 'interval']).default('tick'),
  onCreate: functionShape<RoomCode['onCreate']>(),
  onJoin: functionShape<RoomCode['onJoin']>(),
  onLeave: functionShape<RoomCode['onLeave']>(),
  onDestroy: functionShape<RoomCode['onDestroy']>(),
  actions: handlersShape<NonNullable<RoomCode['actions']>[string]>(),
  timers: handlersShape<NonNullable<RoomCode['timers']>[string]>(),
})

export const roomsShape = z.record(z.string(), roomShape)
export type WrittenRoom = z.output<typeof roomShape>

/** Errors of the section beyond its shape. */
export function checkRooms(written: unknown): ConfigIssue[] {
  return membersOf(written).flatMap(([name]): ConfigIssue[] => {
    const message = findNameMistake(name)
    return message === null ? [] : [{ path: ['rooms', name], message }]
  })
}

/** The namespace from a valid section. */
export function createRoomNamespace(name: string, written: WrittenRoom): RoomNamespace {
  const { access, onCreate, onJoin, onLeave, onDestroy, actions, timers } = written
  const code = { onCreate, onJoin, onLeave, onDestroy, actions: ownMembers(actions), timers: ownMembers(timers) }
  return Object.freeze({
    name,
    code: Object.freeze(code) as RoomCode,
    access: Object.freeze({
      join: access.join,
      action: access.action,
      signal: access.signal,
      metadata: access.metadata,
    }),
    hasPublicMetadata: written.public.metadata,
    maxPlayers: written.maxPlayers,
    maxStateBytes: written.maxStateSize ?? roomStateBytes,
    authTimeoutMs: written.authTimeout ?? socketAuthTimeoutMs,
    actionTimeoutMs: written.actionTimeout ?? roomActionTimeoutMs,
    reconnectGraceMs: written.reconnectGrace ?? roomReconnectGraceMs,
    hibernateAfterMs: written.hibernateAfter ?? roomHibernateAfterMs,
    saveIntervalMs: written.saveInterval ?? roomSaveIntervalMs,
    stateTtlMs: written.stateTtl ?? roomStateTtlMs,
    messageRate: written.messageRate,
    durability: written.durability,
  })
}

/** Without a prototype, so that an action named `constructor` finds no handler. */
const ownMembers = <T>(members: Readonly<Record<string, T>> = {}): Readonly<Record<string, T>> =>
  Object.freeze(Object.assign(Object.create(null) as Record<string, T>, members))
