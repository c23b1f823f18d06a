/**
 * The instances of a namespace, from the names of their files. A search reads every folder, in turns and outside of the
 * event loop, and keeps one page of names: nothing has to be kept up to date, whatever the number of instances.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createSemaphore } from '../../../base/concurrency/semaphore.ts'
import {
  instanceFoldersReadMax,
  instanceSearchesWaitingMax,
  recentInstancesMax,
  recentInstancesReadMax,
} from '../../../limits/sqlite.ts'
import { EngineError } from '../../sql/error.ts'
import type { FoundInstance, InstancePage, InstanceSearch } from '../../sql/instance-search.ts'
import { instanceIdOf, instancePath } from './instance-database.ts'

const extension = '.sqlite'

export interface InstanceListDeps {
  readonly folder: string
  /**
   * The instances of a namespace with an open database, the least recently used first, with their last write since
   * they were opened.
   */
  readonly opened: (namespace: string) => readonly FoundInstance[]
}

/** The `most` smallest of the texts that are added, sorted. */
class Smallest {
  readonly #most: number
  #texts: string[] = []

  constructor(most: number) {
    this.#most = most
  }

  add(text: string): void {
    const last = this.#texts.at(-1)
    if (this.#texts.length === this.#most && last !== undefined && text > last) return
    let [from, to] = [0, this.#texts.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#texts[middle] as string) < text) from = middle + 1
      else to = middle
    }
    this.#texts.splice(from, 0, text)
    if (this.#texts.length > this.#most) this.#texts.pop()
  }

  get texts(): readonly string[] {
    return this.#texts
  }
}

/** Background jobs open instances too, so that the last write decides; of equal times, the last use. */
const latestOf = (instances: readonly FoundInstance[]): readonly FoundInstance[] =>
  instances
    .toReversed()
    .sort((one, other) => (other.writtenAtMs ?? 0) - (one.writtenAtMs ?? 0))
    .slice(0, recentInstancesMax)

const namesIn = (path: string): Promise<string[]> => readdir(path).catch(() => [])

/** Finds instances. Throws `EngineError` `busy` where too many searches wait. */
export function createInstanceList({ folder, opened }: InstanceListDeps) {
  const searches = createSemaphore({ running: 1, waiting: instanceSearchesWaitingMax })

  const matches = ({ text, match, after }: InstanceSearch, id: string): boolean =>
    id > after && (match === 'prefix' ? id.startsWith(text) : id.includes(text))

  async function collect(search: InstanceSearch): Promise<readonly string[]> {
    const found = new Smallest(search.limit + 1)
    const top = join(folder, 'instances', search.namespace)
    const shards = await namesIn(top)
    for (let at = 0; at < shards.length; at += instanceFoldersReadMax) {
      const some = shards.slice(at, at + instanceFoldersReadMax)
      for (const names of await Promise.all(some.map((shard) => namesIn(join(top, shard)))))
        for (const name of names) {
          const id = name.endsWith(extension) ? instanceIdOf(name.slice(0, -extension.length)) : null
          if (id !== null && matches(search, id)) found.add(id)
        }
    }
    return found.texts
  }

  /** From the files, which have the writes before the database was opened. A checkpoint changes only the main file. */
  async function writtenAt(namespace: string, id: string): Promise<number | null> {
    const path = instancePath(folder, namespace, id)
    const [main, log] = await Promise.all([path, `${path}-wal`].map((file) => stat(file).catch(() => null)))
    const found = log && log.size > 0 ? log : main
    return found && found.size > 0 ? Math.floor(found.mtimeMs) : null
  }

  return async (search: InstanceSearch): Promise<InstancePage> => {
    const { namespace, limit } = search
    const collecting = searches.run(() => collect(search))
    if (!collecting) throw new EngineError('busy', 'Too many searches of instances are waiting')
    const ids = await collecting
    const open = opened(namespace)
    const known = new Map(open.map(({ id, writtenAtMs }) => [id, writtenAtMs]))
    const describeAll = (some: readonly string[]): Promise<FoundInstance[]> =>
      Promise.all(some.map(async (id) => ({ id, writtenAtMs: known.get(id) ?? (await writtenAt(namespace, id)) })))
    return {
      instances: await describeAll(ids.slice(0, limit)),
      hasMore: ids.length > limit,
      recent: latestOf(await describeAll(open.slice(-recentInstancesReadMax).map(({ id }) => id))),
    }
  }
}
