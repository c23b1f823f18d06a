/** The buckets of the configuration. */
import { useLocation } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useSchema } from '../../app/queries.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Icon } from '../../design/icons.tsx'
import { Card, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'

const columns: readonly Column<string>[] = [
  {
    id: 'bucket',
    title: 'Bucket',
    cell: (bucket) => (
      <span className="files-name">
        <Icon name="files" /> {bucket}
      </span>
    ),
  },
]

const sample = `export default defineConfig({
  storage: {
    buckets: {
      avatars: { access: { read: true, write: (auth) => auth && { uploadedBy: auth.id } } },
    },
  },
})`

export function BucketList() {
  const [, navigate] = useLocation()
  const permits = usePermits()
  const { data, error, refetch } = useSchema()
  const buckets = (data?.buckets ?? []).filter((bucket) => permits(`storage:bucket:${bucket}:read`))
  return (
    <Page title="Files" description="The buckets of your application and what is stored in them.">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={4} />}
      {data !== undefined && buckets.length === 0 && (
        <EmptyState icon="files" title="No buckets yet">
          <p>Files are stored in buckets. Declare one in the configuration; its rules say who reads and writes.</p>
          <CodeBlock code={sample} label="plinth.config.ts" />
        </EmptyState>
      )}
      {buckets.length > 0 && (
        <Card isFlush>
          <Table
            label="Buckets"
            rows={buckets}
            columns={columns}
            keyOf={(bucket) => bucket}
            onOpen={(bucket) => navigate(`/files/${encodeURIComponent(bucket)}`)}
          />
        </Card>
      )}
    </Page>
  )
}
