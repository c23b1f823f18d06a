/** Code: the functions of the application, and the jobs that they run. */
import { Route, Switch } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { DeadLetters } from './dead-letters.tsx'
import { Functions } from './functions.tsx'
import { JobPage } from './job-page.tsx'
import { Jobs } from './jobs.tsx'
import { Lines } from './lines.tsx'
import { Schedules } from './schedules.tsx'
import { Webhooks } from './webhooks.tsx'

export default function Code() {
  return (
    <Switch>
      <Route path="/code/schedules">
        <Schedules />
      </Route>
      <Route path="/code/jobs">
        <Jobs />
      </Route>
      <Route path="/code/job">
        <OneJob />
      </Route>
      <Route path="/code/dead">
        <DeadLetters />
      </Route>
      <Route path="/code/webhooks">
        <Webhooks />
      </Route>
      <Route path="/code/logs">
        <Lines />
      </Route>
      <Route>
        <Functions />
      </Route>
    </Switch>
  )
}

function OneJob() {
  const id = useUrlState().get('id') ?? ''
  return <JobPage key={id} id={id} />
}
