/** Users: the list, and one user. */
import { Route, Switch } from 'wouter'
import { UserList } from './user-list.tsx'
import { UserPage } from './user-page.tsx'

export default function Users() {
  return (
    <Switch>
      <Route path="/users/:id">{({ id }) => <UserPage key={id} id={decodeURIComponent(id)} />}</Route>
      <Route>
        <UserList />
      </Route>
    </Switch>
  )
}
