/** Files: the buckets, and the folders and files of one. */
import { Route, Switch } from 'wouter'
import { BucketList } from './bucket-list.tsx'
import { BucketPage } from './bucket-page.tsx'

export default function Files() {
  return (
    <Switch>
      <Route path="/files/:bucket">
        {({ bucket }) => <BucketPage key={bucket} bucket={decodeURIComponent(bucket)} />}
      </Route>
      <Route>
        <BucketList />
      </Route>
    </Switch>
  )
}
