/**
 * Topic subscriptions of users' devices: the rows are the desired state. `topic-sync` applies it to FCM; web push
 * subscriptions are read from here when a message is sent.
 */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidField, notFound } from '../../../errors.ts'
import {
  dirtyFlagLeaseMs,
  pushDevicesPerReadMax,
  pushTopicCharsMax,
  pushTopicsPerDeviceMax,
} from '../../../limits/push.ts'
import { type Device, type DeviceRow, deviceOf } from '../devices/devices.ts'
import type { PushTables } from '../migrations.ts'

/** Position of a device in the order of a topic's devices. */
export interface DevicePosition {
  readonly userId: string
  readonly id: string
}

export interface TopicChange {
  readonly devices: readonly Device[]
  /** FCM tokens to be synced, whose dirty flags the caller has leased. */
  readonly leasedTokens: readonly string[]
}

export interface Topics {
  /**
   * Subscribes or unsubscribes every device of the user. Throws 404 if there are none, and 400 beyond the limit of
   * topics per device.
   */
  change(userId: string, topic: string, isWanted: boolean): Promise<TopicChange>
  /** A page of the web push subscriptions of a topic, after a position. */
  browsersOf(topic: string, after: DevicePosition | null): Promise<Device[]>
}

/** Validates a topic: only characters without a meaning in paths and in FCM conditions (PUSH-TOPIC). Throws 400. */
export function parseTopic(topic: string): string {
  if (topic.length > pushTopicCharsMax)
    throw invalidField('topic', 'max', `must have at most ${pushTopicCharsMax} characters`)
  if (!/^[A-Za-z0-9_.~%-]+$/.test(topic))
    throw invalidField('topic', 'pattern', 'must contain only letters, digits and - _ . ~ %')
  return topic
}

export function createTopics(tables: PushTables, clock: Clock): Topics {
  const { database, devices, topics, marks } = tables
  const { dialect } = database
  const newId = createUuid7(clock)

  /** Dirty flags that another worker has leased; it will notice the change. */
  async function readLeases(tx: Transaction, topic: string, rows: readonly DeviceRow[]): Promise<Map<string, number>> {
    const hashes = rows.map(({ token_hash }) => token_hash)
    const busy = await tx.all<{ token_hash: string; busy_until: unknown }>(sql`SELECT token_hash, busy_until
      FROM ${marks} WHERE topic = ${topic} AND ${dialect.inList(sql`token_hash`, hashes, 'text')}
      AND busy_until > ${clock.now()}${dialect.forUpdate}`)
    return new Map(busy.map(({ token_hash, busy_until }) => [token_hash, Number(busy_until)]))
  }

  return {
    change: (userId, topic, isWanted) =>
      database.write(async (tx) => {
        await tx.lock(`push user ${userId}`)
        const rows = await tx.all<DeviceRow>(
          sql`SELECT * FROM ${devices} WHERE user_id = ${userId} ORDER BY registered`,
        )
        if (rows.length === 0) throw notFound('Device')
        const [nowMs, leasedTokens] = [clock.now(), [] as string[]]
        const busy = await readLeases(tx, topic, rows)
        for (const { token_hash, token, kind, device_id } of rows) {
          const isThis = sql`user_id = ${userId} AND device_id = ${device_id}`
          if (isWanted) {
            const [{ count } = { count: 0 }] = await tx.all<{ count: unknown }>(
              sql`SELECT count(*) AS count FROM ${topics} WHERE ${isThis} AND topic <> ${topic}`,
            )
            if (Number(count) >= pushTopicsPerDeviceMax)
              throw invalidField('topic', 'max', `exceeds the limit of ${pushTopicsPerDeviceMax} topics per device`)
            tx.send(sql`INSERT INTO ${topics} (user_id, device_id, topic) VALUES (${userId}, ${device_id}, ${topic})
              ON CONFLICT (user_id, device_id, topic) DO NOTHING`)
          } else tx.send(sql`DELETE FROM ${topics} WHERE ${isThis} AND topic = ${topic}`)
          if (kind !== 'fcm') continue
          const busyUntilMs = busy.get(token_hash) ?? nowMs + dirtyFlagLeaseMs
          if (!busy.has(token_hash)) leasedTokens.push(token)
          tx.send(sql`INSERT INTO ${marks} (token_hash, topic, token, change, busy_until)
            VALUES (${token_hash}, ${topic}, ${token}, ${newId()}, ${busyUntilMs})
            ON CONFLICT (token_hash, topic) DO UPDATE SET change = excluded.change, busy_until = excluded.busy_until`)
        }
        return { devices: rows.map(deviceOf), leasedTokens }
      }),

    async browsersOf(topic, after) {
      const behind = after ? sql` AND (t.user_id, t.device_id) > (${after.userId}, ${after.id})` : sql``
      const rows = await database.all<DeviceRow>(sql`SELECT d.* FROM ${topics} AS t
        JOIN ${devices} AS d ON d.user_id = t.user_id AND d.device_id = t.device_id
        WHERE t.topic = ${topic} AND d.kind = 'web'${behind}
        ORDER BY t.user_id, t.device_id LIMIT ${pushDevicesPerReadMax}`)
      return rows.map(deviceOf)
    },
  }
}
