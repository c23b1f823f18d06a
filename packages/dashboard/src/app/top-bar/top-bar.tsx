/** The bar at the top: where one is, the environment, its health, search, theme, and the account. */

import { Badge } from '../../design/badge.tsx'
import { Button, IconButton } from '../../design/button.tsx'
import { Menu } from '../../design/menu.tsx'
import { Tooltip } from '../../design/tooltip.tsx'
import type { Area } from '../areas.ts'
import { connection } from '../connection.ts'
import { useHealth } from '../queries.ts'
import { signOut } from '../session-requests.ts'
import type { Session } from '../session-store.ts'
import { useStore } from '../store.ts'
import { chooseTheme, type Theme, useTheme } from '../theme.ts'
import { ViewingPill } from './viewing-pill.tsx'

const modifierKey = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl '

export interface TopBarProps {
  readonly current: Session
  readonly area: Area | undefined
  readonly onOpenRail: () => void
  readonly onOpenPalette: () => void
}

export function TopBar({ current, area, onOpenRail, onOpenPalette }: TopBarProps) {
  return (
    <header className="top-bar">
      <IconButton className="rail-button" icon="menu" label="Open the menu" onClick={onOpenRail} />
      <span className="top-bar-area">{area?.title}</span>
      <EnvironmentBadge mode={current.mode} />
      {current.viewing && <ViewingPill viewing={current.viewing} />}
      <span className="spacer" />
      <HealthMark />
      <Button className="palette-button" icon="search" onClick={onOpenPalette}>
        <span className="palette-button-text">Search…</span>
        <kbd className="kbd">{modifierKey}K</kbd>
      </Button>
      <ThemeMenu />
      <AccountMenu current={current} />
    </header>
  )
}

function EnvironmentBadge({ mode }: { readonly mode: Session['mode'] }) {
  return mode === 'release' ? (
    <Badge tone="bad" hasDot>
      Release
    </Badge>
  ) : (
    <Badge tone="good" hasDot>
      Development
    </Badge>
  )
}

/** The state of the server that is most recently known. */
function HealthMark() {
  const { data } = useHealth()
  const isUp = useStore(connection.state) === 'up'
  const isGood = isUp && data?.status === 'ok'
  const text = !isUp ? 'No connection' : data === undefined ? 'Checking…' : isGood ? 'Healthy' : 'A part is unavailable'
  return (
    <Tooltip text={data?.reason ?? text}>
      <output className={`health-mark ${isGood ? 'is-good' : data === undefined ? '' : 'is-bad'}`}>
        <span className="dot" aria-hidden="true" />
        <span className="health-mark-text">{text}</span>
      </output>
    </Tooltip>
  )
}

const themes: readonly { readonly id: Theme; readonly label: string; readonly icon: 'sun' | 'moon' | 'monitor' }[] = [
  { id: 'system', label: 'As the system', icon: 'monitor' },
  { id: 'light', label: 'Light', icon: 'sun' },
  { id: 'dark', label: 'Dark', icon: 'moon' },
]

function ThemeMenu() {
  const theme = useTheme()
  const icon = themes.find(({ id }) => id === theme)?.icon ?? 'monitor'
  return (
    <Menu
      align="end"
      trigger={<IconButton icon={icon} label="Theme" />}
      actions={themes.map(({ id, label, icon: own }) => ({
        label,
        icon: own,
        isChosen: id === theme,
        run: () => chooseTheme(id),
      }))}
    />
  )
}

function AccountMenu({ current }: { readonly current: Session }) {
  const { user, role } = current
  const name = user.displayName || user.email || user.id
  return (
    <Menu
      align="end"
      trigger={
        <button type="button" className="account-button" aria-label={`Account of ${name}`}>
          <span aria-hidden="true">{[...name][0]?.toUpperCase()}</span>
        </button>
      }
      heading={
        <>
          <strong className="account-name">{name}</strong>
          <span>{role}</span>
        </>
      }
      actions={[{ label: 'Sign out', icon: 'sign-out', run: () => void signOut() }]}
    />
  )
}
