/** The area "Push": messages to devices, and the results of the last 24 hours. */
import { usePermits } from '../../app/permissions.ts'
import { Page } from '../../design/page.tsx'
import { Composer } from './composer.tsx'
import { Log } from './log.tsx'

export default function Push() {
  const maySend = usePermits()('push:notification:*:send')
  return (
    <Page title="Push" description="Messages to the devices of users, and their results.">
      {maySend && <Composer />}
      <Log />
    </Page>
  )
}
