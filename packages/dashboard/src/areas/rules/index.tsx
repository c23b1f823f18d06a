/**
 * Rules: why a caller may or may not do something, what an edited rule would change, what kinds of callers may do at
 * all, and how to attack it.
 */
import type { ReactNode } from 'react'
import { Route, Switch } from 'wouter'
import { Page } from '../../design/page.tsx'
import { type Tab, Tabs } from '../../design/tabs.tsx'
import { Attack } from './attack.tsx'
import { Matrix } from './matrix.tsx'
import { Playground } from './playground.tsx'
import { Shadow } from './shadow/shadow.tsx'

const tabs: readonly Tab[] = [
  { id: 'playground', label: 'Playground', href: '/rules' },
  { id: 'shadow', label: 'Shadow run', href: '/rules/shadow' },
  { id: 'matrix', label: 'Matrix', href: '/rules/matrix' },
  { id: 'attack', label: 'Attack', href: '/rules/attack' },
]

export default function Rules() {
  return (
    <Switch>
      <Route path="/rules/matrix">
        <RulesPage current="matrix">
          <Matrix />
        </RulesPage>
      </Route>
      <Route path="/rules/shadow">
        <RulesPage current="shadow">
          <Shadow />
        </RulesPage>
      </Route>
      <Route path="/rules/attack">
        <RulesPage current="attack">
          <Attack />
        </RulesPage>
      </Route>
      <Route>
        <RulesPage current="playground">
          <Playground />
        </RulesPage>
      </Route>
    </Switch>
  )
}

const RulesPage = ({ current, children }: { readonly current: string; readonly children: ReactNode }) => (
  <Page
    title="Rules"
    description="Who may do what with your records, and why. Nothing on this page writes."
    tabs={<Tabs tabs={tabs} current={current} label="Rules" />}
  >
    {children}
  </Page>
)
