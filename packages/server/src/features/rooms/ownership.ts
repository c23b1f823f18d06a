/**
 * Decides which node runs a room. In a single process a claim costs nothing. Several nodes write the owner into the
 * room's row beside its fencing token; it counts for as long as the owner's node lease is valid, so that one heartbeat
 * covers thousands of rooms. `store` refuses writes with an older token.
 */
import type { Clock } from '../../base/clock.ts'
import { createLru } from '../../base/concurrency/lru.ts'
import type { Log } from '../../base/log.ts'
import { EngineError } from '../../engines/sql/error.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import { roomOwnersKnownMax, roomStateTtlMs } from '../../limits/rooms.ts'
import { type RoomKey, type RoomLease, type RoomOwnership, roomName } from './engine/ports.ts'
import type { RoomNodes } from './nodes.ts'
import { ofRoom, type RoomTables } from './tables.ts'

export interface Ownership extends RoomOwnership {
  /** The node that owned the room at the last failed claim; cleared by this call. */
  takeOwner(key: RoomKey): string | null
  /** Resolves when no released room, or not this one, is still recorded as owned by this node. */
  released(key?: RoomKey): Promise<void>
}

export interface OwnershipDeps {
  readonly tables: RoomTables
  /** Null where this process is alone. */
  readonly nodes: RoomNodes | null
  readonly clock: Clock
  readonly log: Log
}

/** Claims of one generation. With it a fence stays below 2^53 for two million starts. */
const generationSize = 2 ** 32

/** Numbers that increase with every start, independent of clocks, and with every claim. */
function createFences({ database, generations }: RoomTables): () => Promise<number> {
  let generation: Promise<number> | null = null
  let given = 0

  const begin = (): Promise<number> =>
    database.write(async (tx) => {
      await tx.run(sql`INSERT INTO ${generations} (name, generation) VALUES (${'fences'}, 1)
        ON CONFLICT (name) DO UPDATE SET generation = ${generations}.generation + 1`)
      const [row] = await tx.all<{ generation: unknown }>(
        sql`SELECT generation FROM ${generations} WHERE name = ${'fences'}`,
      )
      return Number(row?.generation)
    })

  return async () => {
    generation ??= begin().catch((error) => {
      generation = null
      throw error
    })
    return (await generation) * generationSize + ++given
  }
}

export function createOwnership({ tables, nodes, clock, log }: OwnershipDeps): Ownership {
  const { database, rooms } = tables
  const nextFence = createFences(tables)
  const owners = createLru<string, string>(roomOwnersKnownMax)
  const releasing = new Map<string, Promise<void>>()

  /** The fence of the room, now this node's; or the node it belongs to, unless that is `dead`. */
  async function take(tx: Transaction, key: RoomKey, own: string, dead: string | null, newFence: number) {
    const { dialect } = database
    // Nodes that claim a room for the first time have no row to wait for.
    await tx.lock(`room ${roomName(key)}`)
    const [row] = await tx.all<{ node: string | null; fence: unknown }>(
      sql`SELECT node, fence FROM ${rooms} WHERE ${ofRoom(key)}${dialect.forUpdate}`,
    )
    const node = row?.node ?? null
    if (node !== null && node !== own && node !== dead) return node
    const fence = Math.max(Number(row?.fence ?? 0) + 1, newFence)
    await tx.run(sql`INSERT INTO ${rooms} (namespace, id, node, fence, version_bound, metadata, expires_at)
      VALUES (${key.namespace}, ${key.id}, ${own}, ${fence}, 0, ${'{}'}, ${clock.now() + roomStateTtlMs})
      ON CONFLICT (namespace, id) DO UPDATE SET node = excluded.node, fence = excluded.fence`)
    return fence
  }

  /** Null where the owner cannot be determined: the claim is repeated later. */
  async function tryClaim(key: RoomKey): Promise<RoomLease | null> {
    try {
      return await claim(key)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      log.warn('room.claim_failed', { room: roomName(key), error })
      return null
    }
  }

  async function claim(key: RoomKey): Promise<RoomLease | null> {
    const newFence = await nextFence()
    if (!nodes) return { fence: newFence, isHeld: () => true }
    const session = await nodes.enter()
    let dead: string | null = null
    for (;;) {
      const answer = await database.write((tx) => take(tx, key, session.name, dead, newFence))
      if (typeof answer === 'number') return { fence: answer, isHeld: session.isHeld }
      if (await nodes.isAlive(answer)) {
        owners.set(roomName(key), answer)
        return null
      }
      dead = answer
    }
  }

  async function free(key: RoomKey, { fence }: RoomLease): Promise<void> {
    try {
      await database.write((tx) =>
        tx.run(sql`UPDATE ${rooms} SET node = NULL WHERE ${ofRoom(key)} AND fence = ${fence}`),
      )
    } catch (error) {
      // It stays written down as this node's, which may claim it again, as others may once this node is gone.
      log.warn('room.release_failed', { room: roomName(key), error })
    }
  }

  return {
    claim: tryClaim,
    release(key, lease) {
      if (!nodes) return
      const name = roomName(key)
      const done = free(key, lease).then(() => {
        if (releasing.get(name) === done) releasing.delete(name)
      })
      releasing.set(name, done)
    },
    takeOwner(key) {
      const name = roomName(key)
      const owner = owners.get(name) ?? null
      owners.delete(name)
      return owner
    },
    async released(key) {
      if (key) await releasing.get(roomName(key))
      else await Promise.all(releasing.values())
    },
  }
}
