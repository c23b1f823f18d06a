/**
 * The service keys that are declared, and the lines that declare another one. Keys are in the environment and the
 * configuration, so a new key is made in the page and never sent.
 */
import { useState } from 'react'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Field, TextField } from '../../design/field.tsx'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Card, Spacer, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { declarationOf, keyNamePattern, newKey, variableOf } from './new-service-key.ts'
import { type ServiceKey, useServiceKeys } from './requests.ts'

const Time = ({ at, none }: { readonly at: string | null; readonly none: string }) =>
  at === null ? none : <span title={formatTime(at)}>{formatAge(at)}</span>

const columns: readonly Column<ServiceKey>[] = [
  {
    id: 'name',
    title: 'Key',
    cell: ({ name, source }) => (
      <span className="settings-store">
        {name}
        <small>{source === 'environment' ? 'PLINTH_SERVICE_KEY' : 'serviceKeys'}</small>
      </span>
    ),
  },
  {
    id: 'scopes',
    title: 'Scopes',
    cell: ({ scopes }) => (
      <span className="settings-scopes">
        {scopes.map((scope) => (
          <code key={scope}>{scope === '*' ? '* everything' : scope}</code>
        ))}
      </span>
    ),
  },
  { id: 'used', title: 'Last used', cell: ({ usedAt }) => <Time at={usedAt} none="Never" /> },
  {
    id: 'expires',
    title: 'Expires',
    isOptional: true,
    cell: ({ expiresAt, isExpired }) =>
      isExpired ? <Badge tone="bad">Expired</Badge> : <Time at={expiresAt} none="Never" />,
  },
  {
    id: 'networks',
    title: 'Networks',
    isOptional: true,
    cell: ({ networks }) => (networks === null ? 'Any' : networks.join(', ')),
  },
]

export function ServiceKeys() {
  const { data, error, refetch } = useServiceKeys()
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="stack">
      <Toolbar label="Service keys">
        <p className="settings-lead">
          Keys of servers and scripts. They are declared in the configuration: remove one there to revoke it.
        </p>
        <Spacer />
        <Button icon="plus" onClick={() => setOpen(true)}>
          New key
        </Button>
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={4} />}
      {data !== undefined && (
        <Card isFlush>
          <Table label="Service keys" rows={data.keys} columns={columns} keyOf={({ name }) => name} />
        </Card>
      )}
      <Dialog
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        isSticky
        title="New service key"
        description="The key is made in this page and shown only here. It is valid once the server has both lines."
      >
        <NewKey taken={data?.keys.map(({ name }) => name) ?? []} />
      </Dialog>
    </div>
  )
}

const day = 24 * 60 * 60 * 1000
const lifetimes = [
  { value: '90', label: '90 days' },
  { value: '365', label: 'One year' },
  { value: '0', label: 'No expiry' },
] as const

/** Mounted for as long as the dialog is open: each opening makes another key. */
function NewKey({ taken }: { readonly taken: readonly string[] }) {
  const [key] = useState(newKey)
  const [name, setName] = useState('worker')
  const [scopes, setScopes] = useState('db:table:*:read')
  const [days, setDays] = useState<(typeof lifetimes)[number]['value']>('90')
  const list = scopes.split(/[\s,]+/).filter(Boolean)
  const nameError = taken.includes(name)
    ? 'A key has this name.'
    : keyNamePattern.test(name)
      ? null
      : 'Letters, digits, "-" and "_", beginning with a letter.'
  const expiresAt = days === '0' ? null : new Date(Date.now() + Number(days) * day).toISOString().slice(0, 10)
  return (
    <div className="stack">
      <TextField
        label="Name"
        hint="As the audit log shows it."
        value={name}
        error={nameError}
        spellCheck={false}
        onChange={(event) => setName(event.target.value.trim())}
      />
      <TextField
        label="Scopes"
        hint="Separated by spaces, such as db:table:orders:read or storage:bucket:*:write; * is everything."
        value={scopes}
        error={list.length === 0 ? 'Name at least one.' : null}
        spellCheck={false}
        onChange={(event) => setScopes(event.target.value)}
      />
      <Field label="Valid for">
        {({ id }) => <Select id={id} value={days} options={lifetimes} onChange={setDays} />}
      </Field>
      {nameError === null && list.length > 0 && (
        <>
          <CodeBlock label="Environment of the server" code={`${variableOf(name)}=${key}`} />
          <CodeBlock label="serviceKeys of plinth.config.ts" code={declarationOf({ name, scopes: list, expiresAt })} />
        </>
      )}
    </div>
  )
}
