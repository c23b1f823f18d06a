/** Stores: key-value namespaces, SQL databases and vector indexes that the configuration declares. */
import { Redirect, Route, Switch } from 'wouter'
import { useIsReadOnly, usePermits } from '../../app/permissions.ts'
import { ErrorNote } from '../../design/error-note.tsx'
import { Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { KvBrowser } from './kv/kv-browser.tsx'
import { type Kind, NoStores } from './no-stores.tsx'
import { type Stores, useStores } from './requests.ts'
import { SqlConsole } from './sql/sql-console.tsx'
import { VectorSearch } from './vector/vector-search.tsx'

const labels: Readonly<Record<Kind, string>> = { kv: 'Key-value', sql: 'SQL', vector: 'Vector' }
const kinds: readonly Kind[] = ['kv', 'sql', 'vector']

const pathOf = (kind: Kind, name: string): string => `/stores/${kind}/${encodeURIComponent(name)}`

/** The stores that the role may use. Statements and searches are no reads over HTTP, and refused to viewers. */
function useUsableStores(): { readonly stores: Stores | undefined; readonly kinds: readonly Kind[] } {
  const { data } = useStores()
  const permits = usePermits()
  const isReadOnly = useIsReadOnly()
  if (data === undefined) return { stores: undefined, kinds: [] }
  const stores: Stores = {
    kv: data.kv.filter(({ name }) => permits(`kv:namespace:${name}:read`)),
    sql: data.sql.filter(({ name }) => !isReadOnly && permits(`sql:database:${name}:exec`)),
    vector: data.vector.filter(({ name }) => !isReadOnly && permits(`vector:index:${name}:query`)),
  }
  const isPermitted: Readonly<Record<Kind, boolean>> = {
    kv: permits('kv:namespace:*:read'),
    sql: !isReadOnly && permits('sql:database:*:exec'),
    vector: !isReadOnly && permits('vector:index:*:query'),
  }
  return { stores, kinds: kinds.filter((kind) => isPermitted[kind]) }
}

export default function StoresArea() {
  return (
    <Switch>
      <Route path="/stores/:kind/:name?">
        {({ kind, name }) => <StorePage kind={kind} name={name === undefined ? null : decodeURIComponent(name)} />}
      </Route>
      <Route>
        <StorePage kind={null} name={null} />
      </Route>
    </Switch>
  )
}

function StorePage({ kind, name }: { readonly kind: string | null; readonly name: string | null }) {
  const { error, refetch } = useStores()
  const { stores, kinds: usable } = useUsableStores()
  const current = usable.find((one) => one === kind)
  const [first] = usable
  if (stores !== undefined && current === undefined && first !== undefined)
    return <Redirect to={`/stores/${first}`} replace />
  const tabs = stores !== undefined && current !== undefined && (
    <Tabs
      label="Stores"
      current={current}
      tabs={usable.map((id) => ({ id, label: labels[id], href: `/stores/${id}`, count: stores[id].length }))}
    />
  )
  return (
    <Page title="Stores" description="Data that only your server and functions use." tabs={tabs}>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {stores === undefined && error === null && <Skeleton lines={8} />}
      {stores !== undefined && current !== undefined && <Store stores={stores} kind={current} name={name} />}
    </Page>
  )
}

interface StoreProps {
  readonly stores: Stores
  readonly kind: Kind
  /** Null for the first one. */
  readonly name: string | null
}

function Store({ stores, kind, name }: StoreProps) {
  const names = stores[kind].map((store) => store.name)
  const [first] = names
  if (first === undefined) return <NoStores kind={kind} />
  if (name === null || !names.includes(name)) return <Redirect to={pathOf(kind, first)} replace />
  const choice = { names, hrefOf: (next: string) => pathOf(kind, next) }
  const vector = stores.vector.find((index) => index.name === name)
  if (kind === 'kv') return <KvBrowser key={name} namespace={name} choice={choice} />
  if (kind === 'sql') return <SqlConsole key={name} database={name} choice={choice} />
  return vector && <VectorSearch key={name} index={vector} choice={choice} />
}
