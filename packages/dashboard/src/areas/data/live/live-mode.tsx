/** The live mode of the rows: its switch, and what is new since the rows were read. */
import type { ReactNode } from 'react'
import { session } from '../../../app/session-store.ts'
import { useStore } from '../../../app/store.ts'
import type { UrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { classNames } from '../../../design/class-names.ts'
import type { TableAddress } from '../location.ts'
import type { RowCache } from '../rows/row-cache.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { type LiveRows, newRowsMax } from './live-rows.ts'
import { type Live, useLive } from './use-live.ts'

export interface LiveMode {
  /** Undefined while it is switched off. */
  readonly rows: LiveRows | undefined
  readonly toggle: ReactNode
  readonly bar: ReactNode
}

/** Follows the rows while the URL says so. Searches cannot be followed, and nothing while viewing as a user. */
export function useLiveMode(address: TableAddress, query: RowQuery, cache: RowCache, url: UrlState): LiveMode {
  const isViewing = Boolean(useStore(session.current)?.viewing)
  const isDisabled = query.words !== null || isViewing
  const isOn = url.get('live') !== null && !isDisabled
  const live = useLive(address, query, cache, isOn)
  const onToggle = (next: boolean): void => url.set({ live: next ? '1' : null }, { replace: true })
  return {
    rows: live?.rows,
    toggle: <LiveSwitch live={live} isOn={isOn} isDisabled={isDisabled} onToggle={onToggle} />,
    bar: live && <LiveBar live={live} />,
  }
}

interface LiveSwitchProps {
  readonly live: Live | null
  readonly isOn: boolean
  readonly isDisabled: boolean
  readonly onToggle: (isOn: boolean) => void
}

const titles = {
  connecting: 'Connecting…',
  live: 'Changes are shown as they happen.',
  refused: 'The server refuses to send changes.',
} as const

function LiveSwitch({ live, isOn, isDisabled, onToggle }: LiveSwitchProps) {
  const title = isDisabled
    ? 'Searches, and the view as a user, cannot be followed.'
    : live
      ? titles[live.state]
      : 'Show changes as they happen.'
  return (
    <Button
      size="small"
      aria-pressed={isOn}
      disabled={isDisabled}
      title={title}
      className={classNames('data-live-switch', live && `is-${live.state}`)}
      onClick={() => onToggle(!isOn)}
    >
      <span className="data-live-dot" aria-hidden="true" />
      Live
    </Button>
  )
}

function LiveBar({ live }: { readonly live: Live }) {
  const { rows, state, reason } = live
  if (state === 'refused')
    return (
      <p className="data-live-bar is-refused" role="alert">
        Live is off: {reason}
      </p>
    )
  const count = rows.newCount
  if (count === 0) return null
  const shown = `${count.toLocaleString('en')}${count === newRowsMax ? '+' : ''}`
  return (
    <output className="data-live-bar">
      {shown} new {count === 1 ? 'record' : 'records'}
      <Button size="small" kind="quiet" onClick={() => rows.showNew()}>
        Show
      </Button>
    </output>
  )
}
