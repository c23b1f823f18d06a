/** The buckets of the configuration. */
import { useLocation } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useSchema } from '../../app/queries.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes, formatCount } from '../../design/format/number.ts'
import { Icon } from '../../design/icons.tsx'
import { Card, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { Quota } from './usage/quota.tsx'
import { type BucketUsage, useBucketUsage } from './usage/requests.ts'

const nameColumn: Column<string> = {
  id: 'bucket',
  title: 'Bucket',
  cell: (bucket) => (
    <span className="files-name">
      <Icon name="files" /> {bucket}
    </span>
  ),
}

const usageColumns = (usage: ReadonlyMap<string, BucketUsage>): readonly Column<string>[] => [
  { id: 'files', title: 'Files', isNumeric: true, cell: (bucket) => formatCount(usage.get(bucket)?.files ?? 0) },
  { id: 'bytes', title: 'Stored', isNumeric: true, cell: (bucket) => formatBytes(usage.get(bucket)?.bytes ?? 0) },
  {
    id: 'quota',
    title: 'Quota',
    isOptional: true,
    cell: (bucket) => {
      const { bytes = 0, quotaBytes = null } = usage.get(bucket) ?? {}
      return <Quota label={`Quota of ${bucket}`} bytes={bytes} quotaBytes={quotaBytes} />
    },
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
  const usage = useBucketUsage()
  const counted = usage.data && new Map(usage.data.buckets.map((one) => [one.bucket, one]))
  const buckets = (data?.buckets ?? []).filter((bucket) => permits(`storage:bucket:${bucket}:read`))
  return (
    <Page title="Files" description="The buckets of your application and what is stored in them.">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {usage.error !== null && <ErrorNote error={usage.error} onRetry={() => void usage.refetch()} />}
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
            columns={counted ? [nameColumn, ...usageColumns(counted)] : [nameColumn]}
            keyOf={(bucket) => bucket}
            onOpen={(bucket) => navigate(`/files/${encodeURIComponent(bucket)}`)}
          />
        </Card>
      )}
    </Page>
  )
}
