/** Settings: who may open the dashboard, what was changed, the mails, and how the server is set up. */
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Page } from '../../design/page.tsx'
import { type Tab, Tabs } from '../../design/tabs.tsx'
import { Administrators } from './administrators.tsx'
import { Audit } from './audit.tsx'
import { Mails } from './mails.tsx'
import { Server } from './server.tsx'
import { ServiceKeys } from './service-keys.tsx'

export default function Settings() {
  const url = useUrlState()
  const permits = usePermits()
  const tabs: Tab[] = [
    ...(permits('dashboard:admins:*:read')
      ? [{ id: 'administrators', label: 'Administrators', href: '/settings?tab=administrators' }]
      : []),
    ...(permits('dashboard:audit:*:read') ? [{ id: 'audit', label: 'Audit log', href: '/settings?tab=audit' }] : []),
    ...(permits('dashboard:settings:*:read')
      ? [
          { id: 'keys', label: 'Service keys', href: '/settings?tab=keys' },
          { id: 'mails', label: 'Mails', href: '/settings?tab=mails' },
          { id: 'server', label: 'Server', href: '/settings?tab=server' },
        ]
      : []),
  ]
  const wanted = url.get('tab')
  const current = tabs.find(({ id }) => id === wanted)?.id ?? tabs[0]?.id ?? ''
  return (
    <Page title="Settings" tabs={<Tabs tabs={tabs} current={current} label="Settings" />}>
      {current === 'administrators' && <Administrators />}
      {current === 'audit' && <Audit />}
      {current === 'keys' && <ServiceKeys />}
      {current === 'mails' && <Mails />}
      {current === 'server' && <Server />}
    </Page>
  )
}
