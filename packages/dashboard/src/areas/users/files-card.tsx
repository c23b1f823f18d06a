/** What a user stores in each bucket. */
import { Link } from 'wouter'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes, formatCount } from '../../design/format/number.ts'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type User, useStoredFiles } from './requests.ts'

export function FilesCard({ user }: { readonly user: User }) {
  const { data, error, refetch } = useStoredFiles(user.id)
  return (
    <Card title="Files">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data?.buckets.length === 0 && (
        <EmptyState icon="files" title="No files">
          What the user uploads is counted here.
        </EmptyState>
      )}
      {data !== undefined && data.buckets.length > 0 && (
        <ul className="users-ways">
          {data.buckets.map(({ bucket, files, bytes, userQuotaBytes }) => (
            <li key={bucket}>
              <span className="users-way">
                <Link href={`/files/${encodeURIComponent(bucket)}?tab=usage`}>{bucket}</Link>
                <span>
                  {formatCount(files)} {files === 1 ? 'file' : 'files'}
                </span>
              </span>
              <span>
                {formatBytes(bytes)}
                {userQuotaBytes !== null && ` of ${formatBytes(userQuotaBytes)}`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}
