/** Tries a search in a vector index: by a pasted vector, or by the id of a stored one. */
import { type FormEvent, useState } from 'react'
import { useUrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field, TextField } from '../../../design/field.tsx'
import { formatCount } from '../../../design/format/number.ts'
import { Card, Toolbar } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import { useVectorCount, useVectorMatches, type VectorIndex, type VectorMatch, type VectorQuery } from '../requests.ts'
import { type StoreChoice, StoreSelect } from '../store-select.tsx'
import { type Draft, parseDraft } from './vector-draft.ts'

const columns: readonly Column<VectorMatch>[] = [
  { id: 'id', title: 'Id', cell: ({ id }) => <code className="stores-key">{id}</code> },
  { id: 'score', title: 'Score', isNumeric: true, cell: ({ score }) => score.toFixed(4) },
  { id: 'namespace', title: 'Namespace', isOptional: true, cell: ({ namespace }) => namespace ?? '' },
  {
    id: 'metadata',
    title: 'Metadata',
    isOptional: true,
    cell: ({ metadata }) => <code className="stores-cell">{metadata ? JSON.stringify(metadata) : ''}</code>,
  },
]

/** Longer vectors are not in the URL: servers and proxies refuse long ones. */
const urlCharsMax = 2000

export interface VectorSearchProps {
  readonly index: VectorIndex
  readonly choice: StoreChoice
}

export function VectorSearch({ index, choice }: VectorSearchProps) {
  const url = useUrlState()
  const { data: count } = useVectorCount(index.name)
  const [draft, setDraft] = useState<Draft>({
    target: url.get('target') ?? '',
    topK: url.get('top') ?? '10',
    namespace: url.get('namespace') ?? '',
  })
  const parsed = parseDraft(draft, index)
  /** What was searched for; at first what the URL has. */
  const [query, setQuery] = useState<VectorQuery | null>('query' in parsed ? parsed.query : null)
  const { data, error, refetch, isFetching } = useVectorMatches(index.name, query)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (!('query' in parsed)) return
    const { target, topK, namespace } = draft
    url.set({ target: target.length <= urlCharsMax ? target : null, top: topK, namespace }, { replace: true })
    setQuery(parsed.query)
  }
  return (
    <div className="stack">
      <Toolbar label="Index">
        <StoreSelect label="Index" current={index.name} choice={choice} />
        <span className="stores-note">
          {index.dimensions} dimensions · {index.metric}
          {count !== undefined && ` · ${formatCount(count.vectorCount)} vectors`}
        </span>
      </Toolbar>
      <Card>
        <form className="stack" onSubmit={submit}>
          <Field
            label="Vector or id"
            hint={`A JSON list of ${index.dimensions} numbers, or the id of a stored vector.`}
            error={'problem' in parsed ? parsed.problem : null}
          >
            {(control) => (
              <textarea
                className="input stores-value"
                spellCheck={false}
                value={draft.target}
                onChange={(event) => setDraft({ ...draft, target: event.target.value })}
                {...control}
              />
            )}
          </Field>
          <div className="stores-fields">
            <TextField
              label="Results"
              type="number"
              min={1}
              max={100}
              required
              value={draft.topK}
              onChange={(event) => setDraft({ ...draft, topK: event.target.value })}
            />
            <TextField
              label="Namespace"
              placeholder="All"
              value={draft.namespace}
              onChange={(event) => setDraft({ ...draft, namespace: event.target.value })}
            />
            <Button type="submit" kind="primary" icon="search" isBusy={isFetching} disabled={!('query' in parsed)}>
              Search
            </Button>
          </div>
        </form>
      </Card>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {query !== null && data === undefined && error === null && <Skeleton lines={5} />}
      {data?.matches.length === 0 && (
        <EmptyState icon="search" title="Nothing found">
          The index has no other vector in this namespace.
        </EmptyState>
      )}
      {data !== undefined && data.matches.length > 0 && (
        <Card isFlush>
          <Table label="Matches" rows={data.matches} columns={columns} keyOf={({ id }) => id} />
        </Card>
      )}
    </div>
  )
}
