/** Backups: the archives in the folder of the operator with their verifications, the current run, and starting one. */
import { usePermits } from '../../app/permissions.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes } from '../../design/format/number.ts'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Card, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, LoadMore, Table } from '../../design/table.tsx'
import { useToasts } from '../../design/toast.tsx'
import { type Backup, type BackupRun, useBackupStart, useBackups } from './requests.ts'

const columns: readonly Column<Backup>[] = [
  { id: 'name', title: 'Archive', cell: ({ name }) => <code>{name}</code> },
  {
    id: 'age',
    title: 'Created',
    cell: ({ createdAt }) =>
      createdAt === null ? (
        <Badge tone="warn">No backup</Badge>
      ) : (
        <span title={formatTime(createdAt)}>{formatAge(createdAt)}</span>
      ),
  },
  { id: 'bytes', title: 'Size', isNumeric: true, cell: ({ bytes }) => formatBytes(bytes) },
  { id: 'version', title: 'Version', isOptional: true, cell: ({ version }) => version ?? '—' },
  {
    id: 'secrets',
    title: 'Secrets',
    isOptional: true,
    cell: ({ hasSecrets }) => (hasSecrets ? 'Under a passphrase' : 'None'),
  },
  { id: 'verified', title: 'Verified', cell: ({ verification }) => <Verified verification={verification} /> },
]

function Verified({ verification }: Pick<Backup, 'verification'>) {
  if (verification === null) return <span>Never</span>
  const { isIntact, at, problems } = verification
  return (
    <span title={problems.join('\n') || formatTime(at)}>
      <Badge tone={isIntact ? 'good' : 'bad'} hasDot>
        {isIntact ? 'Intact' : 'Damaged'}
      </Badge>{' '}
      {formatAge(at)}
    </span>
  )
}

export default function Backups() {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useBackups()
  const first = data?.pages[0]
  const backups = data?.pages.flatMap((page) => page.items) ?? []
  const verify = useVerifyColumn(first?.latestRun?.state === 'running')
  return (
    <Page
      title="Backups"
      description="Archives of the whole server: its databases and files."
      actions={first?.state === 'ready' && <StartButton isRunning={first.latestRun?.state === 'running'} />}
    >
      <div className="stack">
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {data === undefined && error === null && <Skeleton lines={5} />}
        {first?.state === 'none' && <NoFolder />}
        {first?.state === 'external' && (
          <EmptyState icon="backups" title="PostgreSQL has the data">
            <p>Back it up with the tools of your database, such as continuous archiving or</p>
            <CodeBlock code={'pg_dump --format=custom "$DATABASE_URL" > plinth.dump'} />
          </EmptyState>
        )}
        {first?.latestRun && <Run run={first.latestRun} bytesWritten={first.bytesWritten} />}
        {first?.state === 'ready' && backups.length === 0 && (
          <EmptyState icon="backups" title="No backups yet">
            A backup is consistent at one moment and does not stop the server; writers wait for a few milliseconds.
          </EmptyState>
        )}
        {backups.length > 0 && (
          <Card isFlush>
            <Table label="Backups" rows={backups} columns={[...columns, ...verify]} keyOf={({ name }) => name} />
          </Card>
        )}
        <LoadMore pages={{ hasNextPage, fetchNextPage, isFetchingNextPage }} label="Older backups" />
        {backups.length > 0 && (
          <Card title="Restoring">
            <div className="stack">
              <p>
                A restore needs a stopped server and a shell. Archives stay until you delete them; copy them away. A
                verification restores an archive into a temporary folder, checks it and removes the folder.
              </p>
              <CodeBlock code={`plinth restore ${backups[0]?.name ?? 'ARCHIVE'}`} />
            </div>
          </Card>
        )}
      </div>
    </Page>
  )
}

function StartButton({ isRunning }: { readonly isRunning: boolean }) {
  const permits = usePermits()
  const toasts = useToasts()
  const start = useBackupStart()
  if (!permits('system:backup:*:write')) return null
  return (
    <Button
      kind="primary"
      icon="backups"
      isBusy={isRunning || start.isPending}
      onClick={() => start.mutate(null, { onError: (error) => toasts.fail('No backup was started', error) })}
    >
      Back up now
    </Button>
  )
}

/** The column of buttons that verify an archive; none for administrators who may not. */
function useVerifyColumn(isRunning: boolean): readonly Column<Backup>[] {
  const permits = usePermits()
  const toasts = useToasts()
  const start = useBackupStart()
  if (!permits('system:backup:*:write')) return []
  const verify = (name: string): void =>
    start.mutate(name, { onError: (error) => toasts.fail('The backup was not verified', error) })
  return [
    {
      id: 'verify',
      title: <span className="visually-hidden">Action</span>,
      cell: ({ name }) => (
        <Button
          kind="quiet"
          size="small"
          aria-label={`Verify ${name}`}
          disabled={isRunning || start.isPending}
          onClick={() => verify(name)}
        >
          Verify
        </Button>
      ),
    },
  ]
}

const NoFolder = () => (
  <EmptyState icon="backups" title="No folder for backups">
    <p>Set a folder outside of the data folder, restart the server, and start backups from here:</p>
    <CodeBlock code="PLINTH_BACKUP_FOLDER=/backups" />
    <p>A shell needs no such folder:</p>
    <CodeBlock code="plinth backup backup.tar" />
  </EmptyState>
)

const titles: Readonly<Record<BackupRun['kind'], Readonly<Record<BackupRun['state'], string>>>> = {
  backup: {
    running: 'A backup is running',
    done: 'The latest backup is complete',
    failed: 'The latest backup failed',
  },
  verification: {
    running: 'A verification is running',
    done: 'The verified backup is intact',
    failed: 'The verification failed',
  },
}
const tones = { running: 'accent', done: 'good', failed: 'bad' } as const

function Run({ run, bytesWritten }: { readonly run: BackupRun; readonly bytesWritten: number | null }) {
  const { kind, state, startedAt, endedAt, message } = run
  return (
    <Card>
      <div className="backups-run" role="status">
        <Badge tone={tones[state]} hasDot>
          {titles[kind][state]}
        </Badge>
        <span>
          started {formatAge(startedAt)}
          {endedAt !== null && `, took ${((Date.parse(endedAt) - Date.parse(startedAt)) / 1000).toFixed(1)} s`}
          {bytesWritten !== null && `, ${formatBytes(bytesWritten)} written`}
        </span>
      </div>
      {message !== null && message !== '' && <pre className="backups-message">{message}</pre>}
    </Card>
  )
}
