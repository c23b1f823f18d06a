/** The frame of the dashboard: the rail with the areas, the bar at the top, and the view of the current area. */
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { IconButton } from '../design/button.tsx'
import { classNames } from '../design/class-names.ts'
import { EmptyState } from '../design/empty-state.tsx'
import { Icon, Logo } from '../design/icons.tsx'
import { Skeleton } from '../design/skeleton.tsx'
import { type Area, areaOf, areas } from './areas.ts'
import { connection } from './connection.ts'
import { ErrorBoundary } from './error-boundary.tsx'
import { CommandPalette } from './palette/palette.tsx'
import { usePermits } from './permissions.ts'
import type { Session } from './session-store.ts'
import { useShortcuts } from './shortcuts.ts'
import { useStore } from './store.ts'
import { TopBar } from './top-bar/top-bar.tsx'

/** One lazy component per area, created once. */
const views = new Map(areas.map((area) => [area.id, lazy(area.load)]))

export function Shell({ current }: { readonly current: Session }) {
  const [path] = useLocation()
  const permits = usePermits()
  const [isRailOpen, setRailOpen] = useState(false)
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const { viewing } = current
  const shown = useMemo(
    () =>
      areas.filter(({ scope, showsViewedUser }) => (!viewing || showsViewedUser) && (scope === null || permits(scope))),
    [permits, viewing],
  )
  const area = areaOf(path)
  useShortcuts({ areas: shown, openPalette: () => setPaletteOpen(true) })
  useEffect(() => setRailOpen(false), [path])
  useEffect(() => {
    const title = area ? `${area.title} · Plinth` : 'Plinth'
    document.title = viewing ? `${viewing.email ?? viewing.id}: ${title}` : title
  }, [area, viewing])
  return (
    <div className={classNames('shell', isRailOpen && 'is-rail-open', viewing && 'is-viewing')}>
      <a className="skip-link" href="#view">
        Skip to the content
      </a>
      <Rail areas={shown} currentId={area?.id} onClose={() => setRailOpen(false)} />
      <div className="shell-main">
        <TopBar
          current={current}
          area={area}
          onOpenRail={() => setRailOpen(true)}
          onOpenPalette={() => setPaletteOpen(true)}
        />
        <ConnectionBanner />
        <main className="view" id="view" tabIndex={-1}>
          <ErrorBoundary resetKey={area?.id ?? path}>
            <Suspense fallback={<ViewSkeleton />}>
              <View area={area} isPermitted={area !== undefined && shown.includes(area)} isViewing={viewing !== null} />
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
      <CommandPalette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} areas={shown} />
    </div>
  )
}

interface ViewProps {
  readonly area: Area | undefined
  readonly isPermitted: boolean
  readonly isViewing: boolean
}

function View({ area, isPermitted, isViewing }: ViewProps) {
  if (area === undefined) return <NotFound />
  if (isViewing && !area.showsViewedUser)
    return (
      <EmptyState icon="eye" title={`${area.title} has no view of a user`}>
        While you view as a user, only Data and Files are shown, as the user sees them.
      </EmptyState>
    )
  if (!isPermitted)
    return (
      <EmptyState icon="lock" title={`Your role does not include ${area.title}`}>
        An owner can give you another role under Settings.
      </EmptyState>
    )
  const Component = views.get(area.id)
  return Component ? <Component /> : <NotFound />
}

const ViewSkeleton = () => (
  <div className="view-skeleton">
    <Skeleton lines={8} />
  </div>
)

export function NotFound() {
  return (
    <EmptyState
      icon="search"
      title="There is no such page"
      action={
        <Link href="/" className="button button-plain button-medium">
          Go to Home
        </Link>
      }
    >
      The address may be from another version, or what it names was deleted.
    </EmptyState>
  )
}

function Rail({
  areas: shown,
  currentId,
  onClose,
}: {
  readonly areas: readonly Area[]
  readonly currentId: string | undefined
  readonly onClose: () => void
}) {
  return (
    <>
      <button type="button" className="rail-backdrop" aria-label="Close the menu" tabIndex={-1} onClick={onClose} />
      <nav className="rail" aria-label="Areas">
        <div className="rail-head">
          <Link href="/" className="rail-brand" aria-label="Plinth, Home">
            <Logo />
            <span>Plinth</span>
          </Link>
          <IconButton className="rail-close" icon="close" label="Close the menu" size="small" onClick={onClose} />
        </div>
        <ul className="rail-areas">
          {shown.map((area) => (
            <li key={area.id}>
              <Link
                href={area.path}
                className={classNames('rail-area', area.id === currentId && 'is-current')}
                aria-current={area.id === currentId ? 'page' : undefined}
              >
                <Icon name={area.icon} />
                {area.title}
              </Link>
            </li>
          ))}
        </ul>
        <div className="rail-foot">
          <a className="rail-area" href="/docs" target="_blank" rel="noreferrer">
            <Icon name="code" />
            API reference
            <Icon name="external" size={12} />
          </a>
        </div>
      </nav>
    </>
  )
}

/** Shown while the server cannot be reached. It disappears by itself. */
function ConnectionBanner() {
  const state = useStore(connection.state)
  if (state === 'up') return null
  return (
    <div className="banner" role="status">
      <span className="spinner" aria-hidden="true" />
      <span>
        <strong>The server cannot be reached.</strong> It may be restarting. The page continues by itself; nothing that
        you entered is lost.
      </span>
    </div>
  )
}
