/** Settings: who may open the dashboard, and what administrators and service keys have changed. */
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Page } from '../../design/page.tsx'
import { type Tab, Tabs } from '../../design/tabs.tsx'
import { Administrators } from './administrators.tsx'
import { Audit } from './audit.tsx'

export default function Settings() {
  const url = useUrlState()
  const permits = usePermits()
  const tabs: Tab[] = [
    ...(permits('dashboard:admins:*:read')
      ? [{ id: 'administrators', label: 'Administrators', href: '/settings?tab=administrators' }]
      : []),
    ...(permits('dashboard:audit:*:read') ? [{ id: 'audit', label: 'Audit log', href: '/settings?tab=audit' }] : []),
  ]
  const wanted = url.get('tab')
  const current = tabs.find(({ id }) => id === wanted)?.id ?? tabs[0]?.id ?? ''
  return (
    <Page title="Settings" tabs={<Tabs tabs={tabs} current={current} label="Settings" />}>
      {current === 'administrators' && <Administrators />}
      {current === 'audit' && <Audit />}
    </Page>
  )
}
