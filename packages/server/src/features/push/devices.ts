/**
 * Devices: who has registered which token, and what goes with them when they go. A token belongs to one user, a device
 * id to each user anew. Every change of what a token hears of leaves marks for `topic-sync`, in the same transaction.
 */
import type { UserCaller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/crypto/hash.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { JsonObject } from '../../base/text/json.ts'
import type { Reader, Transaction } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { invalidToken, notFound } from '../../errors.ts'
import { pushDevicesPerUserMax } from '../../limits/push.ts'
import { type Kind, kindOf, type Platform } from './subscription.ts'
import type { PushTables } from './tables.ts'

export interface Device {
  readonly id: string
  readonly userId: string
  readonly token: string
  readonly kind: Kind
  readonly platform: Platform
  readonly metadata: JsonObject
  readonly createdAtMs: number
}

/** A session that ends, or with null everything that a user has. */
export interface Ending {
  readonly userId: string
  readonly sessionId: string | null
}

/** Devices as their user names them: those that have the token, or the id. */
export interface NamedDevice {
  readonly token?: string | undefined
  readonly deviceId?: string | undefined
}

export interface Devices {
  /**
   * The caller's device, made or renewed. Takes the token from whoever had it, and drops the user's oldest beyond ten.
   * Throws 401 when the caller's session has ended meanwhile.
   */
  register(user: UserCaller, device: { id: string; token: string; platform: Platform }): Promise<Device>
  /** Of this user alone; nothing happens where no device of theirs has the token or the id. */
  unregister(userId: string, device: NamedDevice): Promise<void>
  ofUsers(userIds: readonly string[]): Promise<Device[]>
  /** In the order of their registration. */
  list(userId: string): Promise<Device[]>
  findByToken(token: string): Promise<Device | null>
  /** Throws 404 for a device that the user does not have. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>
  /** Forgets a token that its provider calls dead. */
  forgetToken(tx: Transaction, token: string): void
  /** Forgets what was registered by what ends, as part of the transaction that ends it. */
  forgetEnded(tx: Transaction, ending: Ending): void
}

/** Every device hears of this (SPEC "Push notifications"). */
export const topicOfAll = 'all'

export interface DevicesDeps {
  readonly tables: PushTables
  /** Whether the caller's user and session are still good; they stay as found until the transaction ends. */
  readonly lockActiveUser: (tx: Transaction, user: UserCaller) => Promise<boolean>
  readonly clock: Clock
}

/** As it is stored. */
export interface DeviceRow {
  readonly token_hash: string
  readonly token: string
  readonly kind: Kind
  readonly user_id: string
  readonly device_id: string
  readonly platform: Platform
  readonly metadata: string
  readonly created_at: unknown
}

export const deviceOf = (row: DeviceRow): Device => ({
  id: row.device_id,
  userId: row.user_id,
  token: row.token,
  kind: row.kind,
  platform: row.platform,
  metadata: JSON.parse(row.metadata),
  createdAtMs: Number(row.created_at),
})

export function createDevices({ tables, lockActiveUser, clock }: DevicesDeps): Devices {
  const { database, devices, topics, marks } = tables
  const { dialect } = database
  const newId = createUuid7(clock)

  const select = (on: Reader, condition: SqlText): Promise<DeviceRow[]> =>
    on.all<DeviceRow>(sql`SELECT * FROM ${devices} AS d WHERE ${condition} ORDER BY registered`)

  /** Marks every topic of these devices, whose rows are `d`, as something that FCM may not know yet. */
  function setDirtyFlags(tx: Transaction, condition: SqlText): void {
    tx.send(sql`INSERT INTO ${marks} (token_hash, topic, token, change, busy_until)
      SELECT d.token_hash, t.topic, d.token, ${newId()}, 0 FROM ${devices} AS d
      JOIN ${topics} AS t ON t.user_id = d.user_id AND t.device_id = d.device_id
      WHERE d.kind = 'fcm' AND ${condition}
      ON CONFLICT (token_hash, topic) DO UPDATE SET change = excluded.change`)
  }

  /** `d` is the device's row in the condition. */
  function remove(tx: Transaction, condition: SqlText): void {
    setDirtyFlags(tx, condition)
    // From the few devices to their topics: the other way round every topic of everybody would be looked at.
    tx.send(sql`DELETE FROM ${topics} WHERE (user_id, device_id) IN
      (SELECT d.user_id, d.device_id FROM ${devices} AS d WHERE ${condition})`)
    tx.send(sql`DELETE FROM ${devices} AS d WHERE ${condition}`)
  }

  /** Those of a user who have the longest time not registered, beyond what one may have beside this one. */
  async function removeSurplus(tx: Transaction, userId: string, deviceId: string): Promise<void> {
    const others = await select(tx, sql`user_id = ${userId} AND device_id <> ${deviceId}`)
    for (const { token_hash } of others.slice(0, Math.max(0, others.length + 1 - pushDevicesPerUserMax)))
      remove(tx, sql`d.token_hash = ${token_hash}`)
  }

  return {
    async register(user, { id, token, platform }) {
      const hash = sha256(token)
      const userId = user.auth.id
      const isThis = sql`d.user_id = ${userId} AND d.device_id = ${id}`
      const row = await database.write(async (tx) => {
        await tx.lock(`push user ${userId}`, `push token ${hash}`)
        if (!(await lockActiveUser(tx, user))) throw invalidToken()
        remove(tx, sql`d.token_hash = ${hash} AND NOT (${isThis})`)
        await removeSurplus(tx, userId, id)
        const [known] = await select(tx, isThis)
        // The topics are the device's: the old token leaves them, and the new one takes its place.
        if (known && known.token_hash !== hash) setDirtyFlags(tx, isThis)
        const kind = kindOf(token, platform)
        tx.send(sql`INSERT INTO ${devices} (token_hash, token, kind, user_id, device_id, platform, session_id, metadata,
          created_at, registered) VALUES (${hash}, ${token}, ${kind}, ${userId}, ${id}, ${platform}, ${user.sessionId},
          '{}', ${clock.now()}, ${newId()})
          ON CONFLICT (user_id, device_id) DO UPDATE SET token_hash = excluded.token_hash, token = excluded.token,
          kind = excluded.kind, platform = excluded.platform, session_id = excluded.session_id,
          registered = excluded.registered`)
        tx.send(sql`INSERT INTO ${topics} (user_id, device_id, topic) VALUES (${userId}, ${id}, ${topicOfAll})
          ON CONFLICT (user_id, device_id, topic) DO NOTHING`)
        if (known?.token_hash !== hash) setDirtyFlags(tx, isThis)
        const [stored] = await select(tx, isThis)
        return stored as DeviceRow
      })
      return deviceOf(row)
    },

    async unregister(userId, { token, deviceId }) {
      await database.write(async (tx) => {
        if (token !== undefined) await remove(tx, sql`d.token_hash = ${sha256(token)} AND d.user_id = ${userId}`)
        if (deviceId !== undefined) await remove(tx, sql`d.device_id = ${deviceId} AND d.user_id = ${userId}`)
      })
    },

    ofUsers: async (userIds) => (await select(database, dialect.inList(sql`user_id`, userIds, 'text'))).map(deviceOf),
    list: async (userId) => (await select(database, sql`user_id = ${userId}`)).map(deviceOf),

    async findByToken(token) {
      const [row] = await select(database, sql`token_hash = ${sha256(token)}`)
      return row ? deviceOf(row) : null
    },

    async setMetadata(userId, deviceId, metadata) {
      const changed = await database.write((tx) =>
        tx.run(sql`UPDATE ${devices} SET metadata = ${JSON.stringify(metadata)}
          WHERE user_id = ${userId} AND device_id = ${deviceId}`),
      )
      if (changed === 0) throw notFound('Device')
    },

    forgetToken: (tx, token) => remove(tx, sql`d.token_hash = ${sha256(token)}`),

    forgetEnded: (tx, { userId, sessionId }) =>
      remove(tx, sessionId === null ? sql`d.user_id = ${userId}` : sql`d.session_id = ${sessionId}`),
  }
}
