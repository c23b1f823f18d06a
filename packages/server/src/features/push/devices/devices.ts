/**
 * Devices: registrations of tokens, and removal of what depends on them. A token belongs to one user; a device id is
 * scoped to its user. Every change to the topics of a token sets dirty flags for `topic-sync` in the same transaction.
 */
import type { UserCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken, notFound } from '../../../errors.ts'
import { pushDevicesPerUserMax } from '../../../limits/push.ts'
import type { PushTables } from '../migrations.ts'
import { type Kind, kindOf, type Platform } from './subscription.ts'

export interface Device {
  readonly id: string
  readonly userId: string
  readonly token: string
  readonly kind: Kind
  readonly platform: Platform
  readonly metadata: JsonObject
  readonly createdAtMs: number
}

/** A session that ends, or all sessions of a user (null). */
export interface Ending {
  readonly userId: string
  readonly sessionId: string | null
}

/** Selects devices of a user by token or by id. */
export interface NamedDevice {
  readonly token?: string | undefined
  readonly deviceId?: string | undefined
}

export interface Devices {
  /**
   * Creates or updates the caller's device. Takes the token over from any other registration, and removes the user's
   * oldest devices beyond `pushDevicesPerUserMax`. Throws 401 if the caller's session has ended.
   */
  register(user: UserCaller, device: { id: string; token: string; platform: Platform }): Promise<Device>
  /** Removes matching devices of this user only; no effect without a match. */
  unregister(userId: string, device: NamedDevice): Promise<void>
  ofUsers(userIds: readonly string[]): Promise<Device[]>
  /** In order of registration. */
  list(userId: string): Promise<Device[]>
  findByToken(token: string): Promise<Device | null>
  /** Throws 404 if the user has no such device. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>
  /** Removes a token that its provider has reported as unregistered. */
  forgetToken(tx: Transaction, token: string): void
  /** Removes the devices registered by an ending session, in the transaction that ends it. */
  forgetEnded(tx: Transaction, ending: Ending): void
}

/** The topic that every device subscribes to. */
export const topicOfAll = 'all'

export interface DevicesDeps {
  readonly tables: PushTables
  /** Whether the caller's user and session are active; locks both until the transaction ends. */
  readonly lockActiveUser: (tx: Transaction, user: UserCaller) => Promise<boolean>
  readonly clock: Clock
}

/** A device as stored. */
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

  /** Sets dirty flags for every topic of these devices; the condition refers to the device rows as `d`. */
  function setDirtyFlags(tx: Transaction, condition: SqlText): void {
    tx.send(sql`INSERT INTO ${marks} (token_hash, topic, token, change, busy_until)
      SELECT d.token_hash, t.topic, d.token, ${newId()}, 0 FROM ${devices} AS d
      JOIN ${topics} AS t ON t.user_id = d.user_id AND t.device_id = d.device_id
      WHERE d.kind = 'fcm' AND ${condition}
      ON CONFLICT (token_hash, topic) DO UPDATE SET change = excluded.change`)
  }

  /** The condition refers to the device rows as `d`. */
  function remove(tx: Transaction, condition: SqlText): void {
    setDirtyFlags(tx, condition)
    // Starts from the few devices; the other direction would scan the topics of all devices.
    tx.send(sql`DELETE FROM ${topics} WHERE (user_id, device_id) IN
      (SELECT d.user_id, d.device_id FROM ${devices} AS d WHERE ${condition})`)
    tx.send(sql`DELETE FROM ${devices} AS d WHERE ${condition}`)
  }

  /** Removes the user's least recently registered devices beyond the limit, not counting this one. */
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
        // Topics belong to the device: its old token leaves them and its new token joins them.
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
