/** The audit log: who changed what, with the values before and after, and the verification of its chain. */
import { useState } from 'react'
import { useUrlState } from '../../app/url-state.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch } from '../../design/field.tsx'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Icon } from '../../design/icons.tsx'
import { Card, Facts, Spacer, Toolbar } from '../../design/page.tsx'
import { Popover } from '../../design/popover.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, LoadMore, Table } from '../../design/table.tsx'
import { type AuditEntry, exportCommand, useAudit, useVerification } from './requests.ts'

const tones: Readonly<Record<AuditEntry['outcome'], Tone>> = { done: 'good', failed: 'bad', unknown: 'warn' }

const columns: readonly Column<AuditEntry>[] = [
  { id: 'action', title: 'Action', cell: ({ action }) => <code>{action}</code> },
  { id: 'actor', title: 'Actor', cell: ({ actor, actorName }) => actorName ?? actor },
  {
    id: 'target',
    title: 'Target',
    isOptional: true,
    cell: ({ target }) => <code className="settings-target">{target}</code>,
  },
  {
    id: 'outcome',
    title: 'Outcome',
    isOptional: true,
    cell: ({ outcome }) => <Badge tone={tones[outcome]}>{outcome}</Badge>,
  },
  { id: 'at', title: 'Time', cell: ({ at }) => <span title={formatTime(at)}>{formatAge(at)}</span> },
]

const textCharsMax = 200

export function Audit() {
  const url = useUrlState()
  const filter = { actor: url.get('actor') ?? '', action: url.get('action') ?? '', target: url.get('target') ?? '' }
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useAudit(filter)
  const [open, setOpen] = useState<AuditEntry | null>(null)
  const entries = data?.pages.flatMap((page) => page.items) ?? []
  return (
    <>
      <Toolbar label="Filters">
        {(['action', 'target', 'actor'] as const).map((name) => (
          <DelayedSearch
            key={name}
            className="settings-filter"
            label={labels[name]}
            initial={filter[name]}
            maxLength={textCharsMax}
            onSearch={(text) => url.set({ [name]: text }, { replace: true })}
          />
        ))}
        <Spacer />
        <Popover title="Export" align="end" trigger={<Button icon="download">Export</Button>}>
          <div className="settings-export stack">
            <p>Every entry that fits the filters, oldest first, one JSON object per line:</p>
            <CodeBlock code={exportCommand(filter)} />
          </div>
        </Popover>
      </Toolbar>
      <Chain />
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && entries.length === 0 && (
        <EmptyState icon="lock" title="No entries">
          Each change by an administrator or a service key is recorded here. Entries cannot be changed; actions, targets
          and actors are searched by their beginning.
        </EmptyState>
      )}
      {entries.length > 0 && (
        <Card isFlush>
          <Table label="Audit log" rows={entries} columns={columns} keyOf={({ id }) => id} onOpen={setOpen} />
        </Card>
      )}
      <LoadMore pages={{ hasNextPage, fetchNextPage, isFetchingNextPage }} label="Older entries" />
      <Dialog isOpen={open !== null} onClose={() => setOpen(null)} shape="panel" title={open?.action ?? ''}>
        {open !== null && <Entry entry={open} />}
      </Dialog>
    </>
  )
}

const labels = { action: 'Action, such as records.', target: 'Path of the target', actor: 'Key or admin:id' } as const

/** The state of the chain of hashes, once it was verified. */
function Chain() {
  const verification = useVerification()
  const { data, error, isPending } = verification
  return (
    <div className="settings-chain">
      <Button size="small" icon="lock" isBusy={isPending} onClick={() => verification.mutate()}>
        Verify the chain
      </Button>
      <span role="status">
        {data?.ok === true && (
          <span className="settings-good">
            <Icon name="check" /> {data.entries.toLocaleString('en')} entries, none changed or removed.
          </span>
        )}
      </span>
      {data?.broken && (
        <p className="settings-bad" role="alert">
          <Icon name="alert" /> The entry <code>{data.broken.id}</code> does not fit: {data.broken.reason}. Compare the
          log with a backup.
        </p>
      )}
      {error !== null && <ErrorNote error={error} />}
    </div>
  )
}

function Entry({ entry }: { readonly entry: AuditEntry }) {
  return (
    <div className="stack">
      <Facts
        facts={[
          ['Time', formatTime(entry.at)],
          ['Actor', entry.actorName === null ? entry.actor : `${entry.actorName} (${entry.actor})`],
          ['Via', entry.via === 'dashboard' ? 'Dashboard' : 'Service key'],
          ['Address', entry.ip],
          [
            'Target',
            <code key="target" className="settings-wrapped">
              {entry.target}
            </code>,
          ],
          [
            'Outcome',
            <Badge key="outcome" tone={tones[entry.outcome]}>
              {entry.outcome}
            </Badge>,
          ],
          ['Request', <code key="request">{entry.requestId}</code>],
          [
            'Hash',
            <code key="hash" className="settings-wrapped">
              {entry.hash}
            </code>,
          ],
        ]}
      />
      {entry.before !== null && <CodeBlock label="Before" code={JSON.stringify(entry.before, null, 2)} />}
      {entry.after !== null && <CodeBlock label="After" code={JSON.stringify(entry.after, null, 2)} />}
    </div>
  )
}
