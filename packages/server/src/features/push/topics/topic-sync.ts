/**
 * Synchronizes FCM topic membership with the desired memberships in the database. Every change sets a dirty flag for
 * its token and topic. A worker leases a batch of flags, reads the desired state, calls FCM, and deletes the flags
 * unless the state has changed meanwhile. A crash, an outage or a race leaves a flag, never a wrong membership.
 */
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Log } from '../../../base/log.ts'
import type { Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { dirtyFlagLeaseMs, fcmTopicTokensMax, topicRetryMs, topicSyncBudgetMs } from '../../../limits/push.ts'
import type { Delivery } from '../delivery.ts'
import type { PushTables } from '../migrations.ts'
import type { Fcm } from '../providers/fcm.ts'

export interface TopicSync {
  /** Syncs tokens and a topic whose flags the caller has leased. Returns the tokens that remain unsynced. */
  syncTopic(topic: string, tokens: readonly string[]): Promise<ReadonlySet<string>>
  /** Starts a background sync of all unleased flags. */
  schedule(): void
  /** Resolves when no sync is running. */
  idle(): Promise<void>
}

export interface TopicSyncDeps {
  readonly tables: PushTables
  /** Null without credentials; flags are kept until there are some. */
  readonly fcm: () => Fcm | null
  readonly delivery: Delivery
  readonly clock: Clock
  readonly log: Log
}

interface DirtyFlag {
  readonly token_hash: string
  readonly topic: string
  readonly token: string
  readonly change: string
  readonly is_wanted: unknown
}

/** FCM errors of tokens that it will never accept. */
const permanentErrors = new Set(['NOT_FOUND', 'INVALID_ARGUMENT', 'UNREGISTERED'])

export function createTopicSync({ tables, fcm, delivery, clock, log }: TopicSyncDeps): TopicSync {
  const { database, devices, topics, marks } = tables
  const { dialect } = database

  const isFlag = ({ token_hash, topic }: DirtyFlag): SqlText => sql`token_hash = ${token_hash} AND topic = ${topic}`
  const keyOf = ({ token_hash, topic }: DirtyFlag): string => `${token_hash} ${topic}`
  const isWanted = sql`EXISTS (SELECT 1 FROM ${devices} AS d
    JOIN ${topics} AS t ON t.user_id = d.user_id AND t.device_id = d.device_id
    WHERE d.token_hash = m.token_hash AND t.topic = m.topic)`

  /** Flags with the desired state, read in one statement so that the two are consistent. */
  const read = (hashes: readonly string[], topic: string | null, on: Reader = database): Promise<DirtyFlag[]> =>
    on.all<DirtyFlag>(sql`SELECT m.token_hash, m.topic, m.token, m.change,
      CASE WHEN ${isWanted} THEN 1 ELSE 0 END AS is_wanted FROM ${marks} AS m
      WHERE ${dialect.inList(sql`m.token_hash`, hashes, 'text')}${topic === null ? sql`` : sql` AND m.topic = ${topic}`}
      ORDER BY m.topic`)

  /** Leases unleased flags. */
  const claim = (): Promise<DirtyFlag[]> =>
    database.write(async (tx) => {
      const nowMs = clock.now()
      const free = await tx.all<DirtyFlag>(sql`SELECT token_hash, topic FROM ${marks}
        WHERE busy_until <= ${nowMs} ORDER BY topic, change
        LIMIT ${fcmTopicTokensMax}${dialect.forUpdate}`)
      for (const flag of free)
        tx.send(sql`UPDATE ${marks} SET busy_until = ${nowMs + dirtyFlagLeaseMs} WHERE ${isFlag(flag)}`)
      if (free.length === 0) return []
      // Read after the rows are locked, so that flags and desired state are of the same snapshot.
      const own = new Set(free.map(keyOf))
      const claimed = await read([...new Set(free.map(({ token_hash }) => token_hash))], null, tx)
      return claimed.filter((flag) => own.has(keyOf(flag)))
    })

  /** Ends the lease of flags; after the pause others can lease them. */
  const release = (group: readonly DirtyFlag[], pauseMs: number): Promise<void> =>
    database.write(async (tx) => {
      for (const flag of group)
        tx.send(sql`UPDATE ${marks} SET busy_until = ${clock.now() + pauseMs} WHERE ${isFlag(flag)}`)
    })

  /** Records the result for one flag: deleted unless it has changed, or retried after a pause. */
  function recordResult(tx: Transaction, flag: DirtyFlag, error: string | null): void {
    if (error !== null && !permanentErrors.has(error)) {
      tx.send(sql`UPDATE ${marks} SET busy_until = ${clock.now() + topicRetryMs} WHERE ${isFlag(flag)}`)
      return
    }
    if (error !== null && Number(flag.is_wanted) === 1)
      tx.send(sql`DELETE FROM ${topics} WHERE topic = ${flag.topic} AND (user_id, device_id) IN
        (SELECT d.user_id, d.device_id FROM ${devices} AS d WHERE d.token_hash = ${flag.token_hash})`)
    tx.send(sql`DELETE FROM ${marks} WHERE ${isFlag(flag)} AND change = ${flag.change}`)
    tx.send(sql`UPDATE ${marks} SET busy_until = 0 WHERE ${isFlag(flag)} AND change <> ${flag.change}`)
  }

  /** Makes one call per topic and direction. Returns the flags that remain unsynced. */
  async function sync(taken: readonly DirtyFlag[]): Promise<readonly DirtyFlag[]> {
    const [provider, endMs] = [fcm(), clock.now() + topicSyncBudgetMs]
    const calls = Map.groupBy(taken, ({ topic, is_wanted }) => `${Number(is_wanted)}${topic}`)
    const unsynced: DirtyFlag[] = []
    for (const group of calls.values()) {
      if (!provider || clock.now() > endMs) {
        await release(group, 0)
        unsynced.push(...group)
        continue
      }
      const { topic, is_wanted } = group[0] as DirtyFlag
      const change = Number(is_wanted) === 1 ? 'batchAdd' : 'batchRemove'
      const tokens = group.map(({ token }) => token)
      const answer = await delivery.deliver(() => provider.changeTopic(change, topic, tokens))
      if (answer.status !== 'answered') {
        log.warn('push.topic_sync_rejected', { topic, devices: group.length, error: answer.error })
        await release(group, topicRetryMs)
        unsynced.push(...group)
        continue
      }
      await database.write(async (tx) => {
        for (const [at, flag] of group.entries()) recordResult(tx, flag, answer.errors[at] ?? null)
      })
      unsynced.push(...group.filter((_, at) => change === 'batchAdd' && (answer.errors[at] ?? null) !== null))
    }
    return unsynced
  }

  let running: Promise<void> | null = null
  let isRequested = false

  async function run(): Promise<void> {
    while (isRequested && fcm()) {
      isRequested = false
      // A configuration reload may remove the credentials: flags would be leased and released forever.
      while (fcm()) {
        const taken = await claim()
        if (taken.length === 0) break
        await sync(taken)
      }
    }
  }

  function schedule(): void {
    isRequested = true
    running ??= run()
      .catch((error) => log.error('push.topic_sync_failed', { error }))
      .finally(() => {
        running = null
        // A request arrived after the last check.
        if (isRequested && fcm()) schedule()
      })
  }

  return {
    async syncTopic(topic, tokens) {
      const unsynced = await sync(await read(tokens.map(sha256), topic))
      // Flags that changed meanwhile are unleased again.
      schedule()
      return new Set(unsynced.map(({ token }) => token))
    },
    schedule,
    idle: async () => {
      await running
    },
  }
}
