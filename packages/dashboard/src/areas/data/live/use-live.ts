/** Follows the rows of a view while that is switched on. */
import { useEffect, useState } from 'react'
import type { TableAddress } from '../location.ts'
import type { RowCache } from '../rows/row-cache.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { LiveRows } from './live-rows.ts'
import { type LiveState, openLiveSocket } from './live-socket.ts'

export interface Live {
  readonly rows: LiveRows
  readonly state: LiveState
  /** Why the server refuses it. */
  readonly reason: string | null
  /** Changes with every change of what is marked. */
  readonly revision: number
}

const channelOf = ({ namespace, instanceId, table }: TableAddress): string =>
  ['dblive', namespace, instanceId, table].filter((part) => part !== null).join(':')

/** Null while it is switched off. Searches cannot be followed. */
export function useLive(address: TableAddress, query: RowQuery, cache: RowCache, isOn: boolean): Live | null {
  const [live, setLive] = useState<Live | null>(null)
  const key = JSON.stringify([address, query.filter])
  useEffect(() => {
    if (!isOn) return
    const [ownAddress, filters] = JSON.parse(key) as [TableAddress, RowQuery['filter']]
    let current: Live
    const change = (values: Partial<Live>): void => {
      current = { ...current, ...values, revision: current.revision + 1 }
      setLive(current)
    }
    const rows = new LiveRows(cache, () => change({}))
    current = { rows, state: 'connecting', reason: null, revision: 0 }
    setLive(current)
    const end = openLiveSocket({
      channel: channelOf(ownAddress),
      filters,
      onChanges: (changes) => rows.apply(changes),
      onGap: () => rows.reload(),
      onState: (state, reason = '') => change({ state, reason: state === 'refused' ? reason : null }),
    })
    return () => {
      end()
      rows.close()
      setLive(null)
    }
  }, [cache, key, isOn])
  return live
}
