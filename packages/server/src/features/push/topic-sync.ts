/**
 * Telling FCM which tokens hear of which topics. What is wanted stands in rows; a flag says that FCM may not know it
 * yet. Whoever takes a flag has it to itself for a while, asks what is wanted now, tells FCM, and removes the flag
 * unless something has changed meanwhile. So a crash, an outage or a race leaves a flag, and never a wrong membership.
 */
import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/crypto/hash.ts'
import type { Log } from '../../base/log.ts'
import type { Reader, Transaction } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { dirtyFlagLeaseMs, fcmTopicTokensMax, topicRetryMs, topicSyncBudgetMs } from '../../limits/push.ts'
import type { Delivery } from './delivery.ts'
import type { Fcm } from './fcm.ts'
import type { PushTables } from './tables.ts'

export interface TopicSync {
  /** Tells FCM of tokens and a topic whose marks are the caller's. Gives those of which it does not know now. */
  syncTopic(topic: string, tokens: readonly string[]): Promise<ReadonlySet<string>>
  /** Tells it of everything that is marked, beside whatever else goes on. */
  schedule(): void
  /** Resolves when nothing is being told. */
  idle(): Promise<void>
}

export interface TopicSyncDeps {
  readonly tables: PushTables
  /** Null while there are no credentials: marks wait for them. */
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

/** What FCM says of tokens that it will never take. */
const permanentErrors = new Set(['NOT_FOUND', 'INVALID_ARGUMENT', 'UNREGISTERED'])

export function createTopicSync({ tables, fcm, delivery, clock, log }: TopicSyncDeps): TopicSync {
  const { database, devices, topics, marks } = tables
  const { dialect } = database

  const isFlag = ({ token_hash, topic }: DirtyFlag): SqlText => sql`token_hash = ${token_hash} AND topic = ${topic}`
  const keyOf = ({ token_hash, topic }: DirtyFlag): string => `${token_hash} ${topic}`
  const isWanted = sql`EXISTS (SELECT 1 FROM ${devices} AS d
    JOIN ${topics} AS t ON t.user_id = d.user_id AND t.device_id = d.device_id
    WHERE d.token_hash = m.token_hash AND t.topic = m.topic)`

  /** Marks with what is wanted at the same moment: in one statement, so that the two fit. */
  const read = (hashes: readonly string[], topic: string | null, on: Reader = database): Promise<DirtyFlag[]> =>
    on.all<DirtyFlag>(sql`SELECT m.token_hash, m.topic, m.token, m.change,
      CASE WHEN ${isWanted} THEN 1 ELSE 0 END AS is_wanted FROM ${marks} AS m
      WHERE ${dialect.inList(sql`m.token_hash`, hashes, 'text')}${topic === null ? sql`` : sql` AND m.topic = ${topic}`}
      ORDER BY m.topic`)

  /** Marks that nobody is at, taken. */
  const claim = (): Promise<DirtyFlag[]> =>
    database.write(async (tx) => {
      const nowMs = clock.now()
      const free = await tx.all<DirtyFlag>(sql`SELECT token_hash, topic FROM ${marks}
        WHERE busy_until <= ${nowMs} ORDER BY topic, change
        LIMIT ${fcmTopicTokensMax}${dialect.forUpdate}`)
      for (const flag of free)
        tx.send(sql`UPDATE ${marks} SET busy_until = ${nowMs + dirtyFlagLeaseMs} WHERE ${isFlag(flag)}`)
      if (free.length === 0) return []
      // Looked at only now that nobody else can change them: a flag and what is wanted must be of one moment.
      const own = new Set(free.map(keyOf))
      const claimed = await read([...new Set(free.map(({ token_hash }) => token_hash))], null, tx)
      return claimed.filter((flag) => own.has(keyOf(flag)))
    })

  /** Gives marks back, for somebody to take after a pause. */
  const release = (group: readonly DirtyFlag[], pauseMs: number): Promise<void> =>
    database.write(async (tx) => {
      for (const flag of group)
        tx.send(sql`UPDATE ${marks} SET busy_until = ${clock.now() + pauseMs} WHERE ${isFlag(flag)}`)
    })

  /** What became of one flag: done unless it has changed, or to be tried again after a pause. */
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

  /** One call for each topic and direction. Gives the marks that FCM was not told of. */
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
      // A reload may take the credentials away in between: what is left would be taken and given back for ever.
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
        // Asked for between the last look and now.
        if (isRequested && fcm()) schedule()
      })
  }

  return {
    async syncTopic(topic, tokens) {
      const unsynced = await sync(await read(tokens.map(sha256), topic))
      // What has changed meanwhile is nobody's again.
      schedule()
      return new Set(unsynced.map(({ token }) => token))
    },
    schedule,
    idle: async () => {
      await running
    },
  }
}
