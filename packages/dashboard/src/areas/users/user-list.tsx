/** The users of the application, newest first, and the search for one of them. */
import { useLocation } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch } from '../../design/field.tsx'
import { formatAge } from '../../design/format-time.ts'
import { Card, Page, Toolbar } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, LoadMore, Table } from '../../design/table.tsx'
import { ImportUsersDialog } from './import/import-users.tsx'
import { NewUserDialog } from './new-user.tsx'
import { type ListedUser, useUsers } from './requests.ts'
import { nameOf, UserBadges } from './user-badges.tsx'

const columns: readonly Column<ListedUser>[] = [
  {
    id: 'user',
    title: 'User',
    cell: (user) => (
      <span className="table-name">
        <strong>{nameOf(user)}</strong>
        {user.displayName !== null && user.email !== null && <span>{user.email}</span>}
      </span>
    ),
  },
  { id: 'state', title: 'State', cell: (user) => <UserBadges user={user} /> },
  { id: 'role', title: 'Role', isOptional: true, cell: ({ role }) => role },
  { id: 'created', title: 'Created', isOptional: true, cell: ({ createdAt }) => formatAge(createdAt) },
  { id: 'id', title: 'Id', isOptional: true, cell: ({ id }) => <code className="users-id">{id}</code> },
]

export function UserList() {
  const [, navigate] = useLocation()
  const permits = usePermits()
  const url = useUrlState()
  const search = url.get('search') ?? ''
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useUsers(search)
  const users = data?.pages.flatMap((page) => page.users) ?? []
  const isNew = url.get('new') !== null
  const mayChange = permits('auth:admin:*:write')
  const newUser = mayChange && (
    <>
      <Button icon="upload" onClick={() => url.set({ import: '1' })}>
        Import
      </Button>
      <Button kind="primary" icon="plus" onClick={() => url.set({ new: '1' })}>
        New user
      </Button>
    </>
  )
  return (
    <Page title="Users" description="Everyone who can sign in to your application." actions={newUser}>
      <Toolbar label="Search">
        <DelayedSearch
          className="users-search"
          label="Email, name or id"
          initial={search}
          maxLength={320}
          onSearch={(text) => url.set({ search: text }, { replace: true })}
        />
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && users.length === 0 && <NoUsers search={search} />}
      {users.length > 0 && (
        <Card isFlush>
          <Table
            label="Users"
            rows={users}
            columns={columns}
            keyOf={({ id }) => id}
            onOpen={({ id }) => navigate(`/users/${encodeURIComponent(id)}`)}
          />
        </Card>
      )}
      <LoadMore pages={{ hasNextPage, fetchNextPage, isFetchingNextPage }} />
      <ImportUsersDialog isOpen={url.get('import') !== null && mayChange} onClose={() => url.set({ import: null })} />
      <NewUserDialog isOpen={isNew && mayChange} onClose={() => url.set({ new: null })} />
    </Page>
  )
}

const NoUsers = ({ search }: { readonly search: string }) =>
  search === '' ? (
    <EmptyState icon="users" title="No users yet">
      Users appear here when they sign up through your application. You can also create or invite one.
    </EmptyState>
  ) : (
    <EmptyState icon="search" title="No user found">
      The search compares the beginning of the email address and of the display name, and whole ids.
    </EmptyState>
  )
