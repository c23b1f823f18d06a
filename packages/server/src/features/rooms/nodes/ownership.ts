/**
 * Decides which node runs a room. In a single process a claim costs nothing. Several nodes write the owner into the
 * room's row beside its fencing token; it counts for as long as the owner's node lease is valid, so that one heartbeat
 * covers thousands of rooms. `store` refuses writes with an older token.
 */
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Log } from '../../../base/log.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { roomOwnersKnownMax, roomStateTtlMs } from '../../../limits/rooms.ts'
import { type RoomKey, type RoomLease, type RoomOwnership, roomName } from '../engine/ports.ts'
import { ofRoom, type RoomTables } from '../migrations.ts'
import type { RoomNodes } from './nodes.ts'

export interface OwnershipDeps {
  readonly tables: RoomTables
  /** Null in a single process. */
  readonly nodes: RoomNodes | null
  readonly clock: Clock
  readonly log: Log
}

/** Claims per generation. Fences stay below 2^53 for two million starts of a server. */
const generationSize = 2 ** 32

/** Fencing tokens: they increase with every start of a server and with every claim, independent of clocks. */
function createFences({ database, generations }: RoomTables): () => Promise<number> {
  let generation: Promise<number> | null = null
  let last = 0

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
    return (await generation) * generationSize + ++last
  }
}

export class Ownership implements RoomOwnership {
  private readonly nextFence: () => Promise<number>
  /** Owners found by failed claims. */
  private readonly owners = createLru<string, string>(roomOwnersKnownMax)
  private readonly releasing = new Map<string, Promise<void>>()

  constructor(private readonly deps: OwnershipDeps) {
    this.nextFence = createFences(deps.tables)
  }

  /** Null also if the owner cannot be determined: the claim is repeated later. */
  async claim(key: RoomKey): Promise<RoomLease | null> {
    try {
      return await this.tryClaim(key)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      this.deps.log.warn('room.claim_failed', { room: roomName(key), error })
      return null
    }
  }

  release(key: RoomKey, lease: RoomLease): void {
    if (!this.deps.nodes) return
    const name = roomName(key)
    const done = this.clearOwner(key, lease).then(() => {
      if (this.releasing.get(name) === done) this.releasing.delete(name)
    })
    this.releasing.set(name, done)
  }

  /** The node that owned the room at the last failed claim; cleared by this call. */
  takeOwner(key: RoomKey): string | null {
    const name = roomName(key)
    const owner = this.owners.get(name) ?? null
    this.owners.delete(name)
    return owner
  }

  /** Resolves when the released room (all released rooms without a key) is not recorded as owned by this node. */
  async released(key?: RoomKey): Promise<void> {
    if (key) await this.releasing.get(roomName(key))
    else await Promise.all(this.releasing.values())
  }

  private async tryClaim(key: RoomKey): Promise<RoomLease | null> {
    const { tables, nodes } = this.deps
    const newFence = await this.nextFence()
    if (!nodes) return { fence: newFence, isValid: () => true }
    const session = await nodes.enter()
    let dead: string | null = null
    for (;;) {
      const owner: string | number = await tables.database.write((tx) =>
        this.recordOwner(tx, key, { own: session.name, dead, newFence }),
      )
      if (typeof owner === 'number') return { fence: owner, isValid: session.isValid }
      if (await nodes.isAlive(owner)) {
        this.owners.set(roomName(key), owner)
        return null
      }
      dead = owner
    }
  }

  /**
   * Records this node as the owner and returns the fence; or returns the name of another owner, unless it is `dead`.
   */
  private async recordOwner(
    tx: Transaction,
    key: RoomKey,
    { own, dead, newFence }: { readonly own: string; readonly dead: string | null; readonly newFence: number },
  ): Promise<string | number> {
    const { tables, clock } = this.deps
    const { database, rooms } = tables
    // Before the first claim of a room there is no row to lock.
    await tx.lock(`room ${roomName(key)}`)
    const [row] = await tx.all<{ node: string | null; fence: unknown }>(
      sql`SELECT node, fence FROM ${rooms} WHERE ${ofRoom(key)}${database.dialect.forUpdate}`,
    )
    const node = row?.node ?? null
    if (node !== null && node !== own && node !== dead) return node
    const fence = Math.max(Number(row?.fence ?? 0) + 1, newFence)
    await tx.run(sql`INSERT INTO ${rooms} (namespace, id, node, fence, version_bound, metadata, expires_at)
      VALUES (${key.namespace}, ${key.id}, ${own}, ${fence}, 0, ${'{}'}, ${clock.now() + roomStateTtlMs})
      ON CONFLICT (namespace, id) DO UPDATE SET node = excluded.node, fence = excluded.fence`)
    return fence
  }

  private async clearOwner(key: RoomKey, { fence }: RoomLease): Promise<void> {
    const { tables, log } = this.deps
    try {
      await tables.database.write((tx) =>
        tx.run(sql`UPDATE ${tables.rooms} SET node = NULL WHERE ${ofRoom(key)} AND fence = ${fence}`),
      )
    } catch (error) {
      // The room stays recorded as owned by this node, which can claim it again; others can once its lease has ended.
      log.warn('room.release_failed', { room: roomName(key), error })
    }
  }
}
