/** The entries of a key-value namespace, in the order of their keys, and the search by prefix. */
import { useEffect, useRef, useState } from 'react'
import { usePermits } from '../../../app/permissions.ts'
import { useUrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { CodeBlock } from '../../../design/code-block.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { SearchInput } from '../../../design/field.tsx'
import { formatBytes } from '../../../design/format/number.ts'
import { formatAge } from '../../../design/format-time.ts'
import { Card, Spacer, Toolbar } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { type Column, LoadMore, Table } from '../../../design/table.tsx'
import { type KvListed, useKvEntries } from '../requests.ts'
import { type StoreChoice, StoreSelect } from '../store-select.tsx'
import { EntryPanel, NewEntryPanel } from './entry-panel.tsx'

const columns: readonly Column<KvListed>[] = [
  { id: 'key', title: 'Key', cell: ({ key }) => <code className="stores-key">{key}</code> },
  { id: 'size', title: 'Size', isNumeric: true, cell: ({ valueBytes }) => formatBytes(valueBytes) },
  { id: 'written', title: 'Written', isOptional: true, cell: ({ writtenAt }) => formatAge(writtenAt) },
  {
    id: 'expires',
    title: 'Expires',
    isOptional: true,
    cell: ({ expiresAt }) => (expiresAt === null ? 'Never' : formatAge(expiresAt)),
  },
]

/** How long typing must pause before it is searched for. */
const typingPauseMs = 250

export interface KvBrowserProps {
  readonly namespace: string
  readonly choice: StoreChoice
}

export function KvBrowser({ namespace, choice }: KvBrowserProps) {
  const url = useUrlState()
  const permits = usePermits()
  const mayWrite = permits(`kv:namespace:${namespace}:write`)
  const prefix = url.get('prefix') ?? ''
  const open = url.get('key')
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useKvEntries(namespace, prefix)
  const entries = data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <>
      <Toolbar label="Entries">
        <StoreSelect label="Namespace" current={namespace} choice={choice} />
        <PrefixSearch initial={prefix} onSearch={(text) => url.set({ prefix: text }, { replace: true })} />
        <Spacer />
        {mayWrite && (
          <Button kind="primary" icon="plus" onClick={() => url.set({ new: '1', key: null })}>
            New entry
          </Button>
        )}
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && entries.length === 0 && <NoEntries namespace={namespace} prefix={prefix} />}
      {entries.length > 0 && (
        <Card isFlush>
          <Table
            label="Entries"
            rows={entries}
            columns={columns}
            keyOf={({ key }) => key}
            isSelected={({ key }) => key === open}
            onOpen={({ key }) => url.set({ key, new: null })}
          />
        </Card>
      )}
      <LoadMore pages={{ hasNextPage, fetchNextPage, isFetchingNextPage }} />
      {open !== null && (
        <EntryPanel
          key={open}
          namespace={namespace}
          entryKey={open}
          mayWrite={mayWrite}
          onClose={() => url.set({ key: null })}
        />
      )}
      {open === null && mayWrite && url.get('new') !== null && (
        <NewEntryPanel
          namespace={namespace}
          onClose={() => url.set({ new: null })}
          onCreated={(key) => url.set({ new: null, key })}
        />
      )}
    </>
  )
}

function PrefixSearch({ initial, onSearch }: { readonly initial: string; readonly onSearch: (text: string) => void }) {
  const [text, setText] = useState(initial)
  const search = useRef(onSearch)
  search.current = onSearch
  useEffect(() => {
    if (text === initial) return
    const timer = setTimeout(() => search.current(text), typingPauseMs)
    return () => clearTimeout(timer)
  }, [text, initial])
  return <SearchInput className="stores-search" label="Keys that begin with" value={text} onChange={setText} />
}

const NoEntries = ({ namespace, prefix }: { readonly namespace: string; readonly prefix: string }) =>
  prefix === '' ? (
    <EmptyState icon="key" title="No entries yet">
      <p>Functions and services store JSON under keys of this namespace.</p>
      <CodeBlock
        label="Function"
        code={`await ctx.kv('${namespace}').set('greeting', { text: 'Hello' }, { ttl: '1h' })`}
      />
    </EmptyState>
  ) : (
    <EmptyState icon="search" title="No key begins with this">
      Keys are compared exactly, with upper and lower case.
    </EmptyState>
  )
