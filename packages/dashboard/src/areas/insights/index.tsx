/** Insights: requests one by one, traffic over time, the events of the application, and the size of its tables. */
import { Route, Switch } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Page } from '../../design/page.tsx'
import { type Tab, Tabs } from '../../design/tabs.tsx'
import { Events } from './events.tsx'
import { Requests } from './recent-requests.tsx'
import { RequestPage } from './request/request-page.tsx'
import { Tables } from './storage/tables.tsx'
import { TrafficView } from './traffic.tsx'

export default function Insights() {
  return (
    <Switch>
      <Route path="/insights/requests/:requestId">
        <RequestPage />
      </Route>
      <Route>
        <Reports />
      </Route>
    </Switch>
  )
}

function Reports() {
  const url = useUrlState()
  const permits = usePermits()
  const tabs: Tab[] = [
    ...(permits('analytics:*:*:read')
      ? [
          { id: 'traffic', label: 'Traffic', href: '/insights?tab=traffic' },
          { id: 'events', label: 'Events', href: '/insights?tab=events' },
        ]
      : []),
    ...(permits('dashboard:requests:*:read')
      ? [{ id: 'requests', label: 'Requests', href: '/insights?tab=requests' }]
      : []),
    ...(permits('db:table:*:read') ? [{ id: 'tables', label: 'Tables', href: '/insights?tab=tables' }] : []),
  ]
  const wanted = url.get('tab')
  const current = tabs.find(({ id }) => id === wanted)?.id ?? tabs[0]?.id ?? ''
  return (
    <Page title="Insights" tabs={<Tabs tabs={tabs} current={current} label="Insights" />}>
      {current === 'traffic' && <TrafficView />}
      {current === 'events' && <Events />}
      {current === 'requests' && <Requests />}
      {current === 'tables' && <Tables />}
    </Page>
  )
}
