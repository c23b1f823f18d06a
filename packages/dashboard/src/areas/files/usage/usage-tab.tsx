/** What a bucket stores, its quotas, and the users with the most bytes. */
import { Link } from 'wouter'
import { usePermits } from '../../../app/permissions.ts'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { formatBytes, formatCount } from '../../../design/format/number.ts'
import { Card, Facts } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { type Column, LoadMore, Table } from '../../../design/table.tsx'
import { Quota } from './quota.tsx'
import { type BucketUsage, type UserOfBucket, useBucketUsage, useBucketUsers } from './requests.ts'

export function UsageTab({ bucket }: { readonly bucket: string }) {
  const { data, error, refetch } = useBucketUsage()
  const usage = data?.buckets.find((one) => one.bucket === bucket)
  return (
    <div className="stack">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={4} />}
      {usage !== undefined && (
        <>
          <Card title="Bucket">
            <Facts facts={factsOf(usage)} />
          </Card>
          <Users bucket={bucket} userQuotaBytes={usage.userQuotaBytes} />
        </>
      )}
    </div>
  )
}

const factsOf = (usage: BucketUsage): readonly (readonly [string, React.ReactNode])[] => [
  ['Files', formatCount(usage.files)],
  ['Stored', `${formatBytes(usage.bytes)}, unfinished uploads included`],
  ['Quota', <Quota key="quota" label="Quota of the bucket" bytes={usage.bytes} quotaBytes={usage.quotaBytes} />],
  ['Quota of a user', usage.userQuotaBytes === null ? 'No quota' : formatBytes(usage.userQuotaBytes)],
  ['Awaiting removal', `${formatBytes(usage.releasedBytes)} of replaced and deleted files, kept for up to a day`],
  ['Image variants', `${formatBytes(usage.variantBytes)}, rendered again when they are removed`],
]

function Users({ bucket, userQuotaBytes }: { readonly bucket: string; readonly userQuotaBytes: number | null }) {
  const permits = usePermits()
  const pages = useBucketUsers(bucket)
  const { data, error, refetch } = pages
  const users = data?.pages.flatMap((page) => page.users) ?? []
  const columns = columnsOf(userQuotaBytes, permits('auth:admin:*:read'))
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton lines={6} />
  return (
    <Card title="Users with the most bytes" isFlush={users.length > 0}>
      {users.length === 0 ? (
        <EmptyState icon="users" title="No user has stored files">
          Files that service keys upload belong to no user and count for the bucket only.
        </EmptyState>
      ) : (
        <Table label="Users by bytes" rows={users} columns={columns} keyOf={({ userId }) => userId} />
      )}
      <LoadMore pages={pages} />
    </Card>
  )
}

const columnsOf = (userQuotaBytes: number | null, mayOpen: boolean): readonly Column<UserOfBucket>[] => [
  {
    id: 'user',
    title: 'User',
    cell: (user) => {
      const name = user.displayName ?? user.email ?? user.userId
      return (
        <span className="files-user">
          {mayOpen ? <Link href={`/users/${encodeURIComponent(user.userId)}`}>{name}</Link> : <span>{name}</span>}
          {name !== user.email && user.email !== null && <span>{user.email}</span>}
        </span>
      )
    },
  },
  { id: 'files', title: 'Files', isNumeric: true, cell: ({ files }) => formatCount(files) },
  { id: 'bytes', title: 'Stored', isNumeric: true, cell: ({ bytes }) => formatBytes(bytes) },
  ...(userQuotaBytes === null
    ? []
    : [
        {
          id: 'quota',
          title: 'Quota',
          isOptional: true,
          cell: ({ userId, bytes }: UserOfBucket) => (
            <Quota label={`Quota of ${userId}`} bytes={bytes} quotaBytes={userQuotaBytes} />
          ),
        },
      ]),
]
