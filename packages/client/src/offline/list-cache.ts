/** The rows of live lists at the last visit, shown until the lists are read again. */
import type { LiveQuery } from '../live/live-query.ts'
import type { Row } from '../records/query.ts'
import { findVersion, setVersions } from '../records/versions.ts'
import type { Store } from './store.ts'

/** The rows of a list up to its bound. */
interface KeptList {
  readonly rows: readonly Row[]
  /** In the order of the rows. */
  readonly versions: readonly (number | null)[]
  /** Whether the list has no more rows. */
  readonly isComplete: boolean
}

/** The lists of one user by key, least recently kept first. */
interface Kept {
  readonly user: string
  readonly lists: Record<string, KeptList | undefined>
}

/** How long changes of lists are collected before they are kept, in milliseconds. */
const saveDelayMs = 1_000

const storeKey = 'lists'

/** Removes the lists of all other users. */
export function createLists({ change, charsMax }: Store, user: string) {
  const unsaved = new Set<LiveQuery>()
  let timer: ReturnType<typeof setTimeout> | undefined

  /** The kept lists; none where those of another user are stored, or a text that is damaged. */
  const read = (text: string | null | undefined): Kept => {
    try {
      const kept = JSON.parse(text as string) as Kept
      if (kept.user === user && kept.lists) return kept
    } catch {
      // A new one begins.
    }
    return { user, lists: {} }
  }
  /** A list that cannot be kept is read again at the next start. */
  const update = async (work: (lists: Kept['lists']) => void = () => undefined): Promise<Kept['lists']> => {
    const text = await change(storeKey, (before) => {
      const kept = read(before)
      work(kept.lists)
      let next = JSON.stringify(kept)
      for (const key of Object.keys(kept.lists)) {
        if (next.length <= charsMax) break
        delete kept.lists[key]
        next = JSON.stringify(kept)
      }
      return next
    })
    return read(text).lists
  }
  const save = (): void => {
    timer = undefined
    const lists = [...unsaved]
    unsaved.clear()
    kept = update((kept) => {
      for (const { key, status, window } of lists) {
        // One that is not used any more keeps what it had.
        if (status === 'loading') continue
        delete kept[key]
        const versions = window.rows.map((row) => findVersion(row) ?? null)
        if (status !== 'closed') kept[key] = { rows: window.rows, versions, isComplete: !window.bound }
      }
    })
    kept.catch(() => undefined)
  }
  let kept = update()
  kept.catch(() => undefined)

  return {
    /** Called when a list changes. */
    async keep(list: LiveQuery): Promise<void> {
      if (list.status !== 'loading') {
        unsaved.add(list)
        timer ??= setTimeout(save, saveDelayMs)
        return
      }
      const found = (await kept)[list.key]
      if (found) list.restore(setVersions(found.rows, found.versions), found.isComplete)
    },
    /** Keeps nothing more. */
    leave(): void {
      clearTimeout(timer)
      unsaved.clear()
    },
  }
}
