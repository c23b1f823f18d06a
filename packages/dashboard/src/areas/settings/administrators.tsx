/** The users who may open the dashboard. Roles are given on the page of a user. */
import { useState } from 'react'
import { useLocation } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { type Administrator, useAdministrators } from '../../app/queries.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatTime } from '../../design/format-time.ts'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { useToasts } from '../../design/toast.tsx'
import { useRoleRemoval } from './requests.ts'

const nameOf = ({ displayName, email, id }: Administrator): string => displayName || email || id

export function Administrators() {
  const [, navigate] = useLocation()
  const mayChange = usePermits()('dashboard:admins:*:write')
  const toasts = useToasts()
  const { data, error, refetch } = useAdministrators()
  const [removed, setRemoved] = useState<Administrator | null>(null)
  const removal = useRoleRemoval()
  const columns: readonly Column<Administrator>[] = [
    { id: 'name', title: 'Administrator', cell: nameOf },
    { id: 'role', title: 'Role', cell: ({ dashboardRole }) => <Badge tone="accent">{dashboardRole}</Badge> },
    {
      id: 'state',
      title: 'State',
      isOptional: true,
      cell: ({ disabled }) => (disabled ? <Badge tone="bad">Disabled</Badge> : 'Active'),
    },
    { id: 'created', title: 'User since', isOptional: true, cell: ({ createdAt }) => formatTime(createdAt) },
    ...(mayChange
      ? [
          {
            id: 'actions',
            title: <span className="visually-hidden">Actions</span>,
            cell: (one: Administrator) => (
              <Button
                size="small"
                onClick={(event) => {
                  event.stopPropagation()
                  setRemoved(one)
                }}
              >
                <span>
                  Remove access<span className="visually-hidden"> of {nameOf(one)}</span>
                </span>
              </Button>
            ),
          },
        ]
      : []),
  ]
  return (
    <div className="stack">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={4} />}
      {data !== undefined && (
        <Card isFlush>
          <Table
            label="Administrators"
            rows={data.administrators}
            columns={columns}
            keyOf={({ id }) => id}
            onOpen={({ id }) => navigate(`/users/${encodeURIComponent(id)}`)}
          />
        </Card>
      )}
      <Card title="Another administrator">
        <div className="stack">
          <p>Open a user and choose a role under Dashboard, or use a shell on the server:</p>
          <CodeBlock code="plinth users set-dashboard-role ada@example.com editor" />
        </div>
      </Card>
      <ConfirmDialog
        isOpen={removed !== null}
        onClose={() => setRemoved(null)}
        title="Remove access to the dashboard?"
        action="Remove access"
        onConfirm={async () => {
          if (removed === null) return
          await removal.mutateAsync(removed.id)
          toasts.add({ title: 'Access removed', tone: 'good' })
        }}
      >
        {removed === null ? '' : nameOf(removed)} is signed out of the dashboard and cannot open it again. The account
        in your application stays.
      </ConfirmDialog>
    </div>
  )
}
