/** What a user may do in this dashboard. */

import { useAdministrators } from '../../app/queries.ts'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { setDashboardRole, type User, useUserChange } from './requests.ts'

const none = 'none'

/** The roles that every server has. One of the configuration is offered where the user has it. */
const roles = [
  { value: none, label: 'No access' },
  { value: 'viewer', label: 'Viewer: reads everything' },
  { value: 'support', label: 'Support: reads everything, administers users' },
  { value: 'editor', label: 'Editor: changes data, files and stores' },
  { value: 'owner', label: 'Owner: everything' },
] as const

export function DashboardRoleCard({ user, mayChange }: { readonly user: User; readonly mayChange: boolean }) {
  const { data, error, refetch } = useAdministrators()
  const toasts = useToasts()
  const change = useUserChange((role: string) => setDashboardRole(user.id, role === none ? null : role))
  const current = data?.administrators.find(({ id }) => id === user.id)?.dashboardRole ?? none
  const isKnown = roles.some(({ value }) => value === current)
  return (
    <Card title="Dashboard">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={1} />}
      {data !== undefined && (
        <Select
          label="Role in the dashboard"
          value={current}
          disabled={!mayChange || change.isPending || user.isAnonymous}
          options={isKnown ? roles : [...roles, { value: current, label: current }]}
          onChange={(role: string) =>
            change.mutate(role, {
              onSuccess: () =>
                toasts.add({ title: 'Dashboard role changed', text: 'The user signs in again.', tone: 'good' }),
              onError: (failure) => toasts.fail('The role was not changed', failure),
            })
          }
        />
      )}
    </Card>
  )
}
