/** Live: the rooms in memory, one room, and the connections of all nodes. */
import { Route, Switch } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { Connections } from './connections.tsx'
import { RoomList } from './room-list.tsx'
import { RoomPage } from './room-page.tsx'

export default function Live() {
  return (
    <Switch>
      <Route path="/live/room">
        <OneRoom />
      </Route>
      <Route path="/live/connections">
        <Connections />
      </Route>
      <Route>
        <RoomList />
      </Route>
    </Switch>
  )
}

/** The room is named by parameters: its id can be any text, also what no path keeps as it is. */
function OneRoom() {
  const url = useUrlState()
  const [namespace, id] = [url.get('namespace') ?? '', url.get('id') ?? '']
  return <RoomPage key={JSON.stringify([namespace, id])} namespace={namespace} id={id} />
}
