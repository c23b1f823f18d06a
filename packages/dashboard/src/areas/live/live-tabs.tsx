/** The views of the area. */
import { usePermits } from '../../app/permissions.ts'
import { Tabs } from '../../design/tabs.tsx'

export function LiveTabs({ current }: { readonly current: 'rooms' | 'connections' }) {
  const permits = usePermits()
  const tabs = [
    { id: 'rooms', label: 'Rooms', href: '/live' },
    ...(permits('system:nodes:*:read') ? [{ id: 'connections', label: 'Connections', href: '/live/connections' }] : []),
  ]
  return <Tabs label="Live" current={current} tabs={tabs} />
}
