/** The question as a form: the caller, which table, which operation, which record. */
import type { FormEvent } from 'react'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Card } from '../../design/page.tsx'
import { CallerFields } from './caller-fields.tsx'
import { JsonField } from './json-field.tsx'
import { type Draft, hasRecord, hasRow, missingOf, operations, type Problems, problemsOf } from './question.ts'
import type { MatrixTable } from './requests.ts'
import { Segments } from './segments.tsx'
import { TableField } from './table-field.tsx'

export interface QuestionFormProps {
  /** Buckets are left out. */
  readonly tables: readonly MatrixTable[]
  readonly draft: Draft
  readonly isBusy: boolean
  readonly onChange: (change: Partial<Draft>) => void
  readonly onExplain: () => void
}

const operationOptions = operations.map((value) => ({ value, label: value }))
const sources = [
  { value: 'id', label: 'Stored' },
  { value: 'row', label: 'Pasted' },
] as const

export function QuestionForm({ tables, draft, isBusy, onChange, onExplain }: QuestionFormProps) {
  const isDynamic = tables.some(({ namespace, hasInstances }) => namespace === draft.namespace && hasInstances)
  const problems = problemsOf(draft)
  const missing = missingOf(draft, isDynamic)
  const isReady = missing === null && Object.values(problems).every((problem) => problem === null)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (isReady) onExplain()
  }
  return (
    <Card title="Question">
      <form className="rules-form" onSubmit={submit}>
        <CallerFields draft={draft} problem={problems.claims} onChange={onChange} />
        <div className="rules-group">
          <TableField tables={tables} draft={draft} onChange={onChange} />
          {isDynamic && (
            <TextField
              label="Instance"
              hint={`${draft.namespace} has one set of tables per instance, such as a tenant.`}
              value={draft.instance}
              maxLength={128}
              onChange={(event) => onChange({ instance: event.target.value })}
            />
          )}
          <Segments
            label="Operation"
            value={draft.operation}
            options={operationOptions}
            onChange={(operation) => onChange({ operation })}
          />
        </div>
        <RecordFields draft={draft} problems={problems} onChange={onChange} />
        <div className="rules-submit">
          <p className="field-note" aria-live="polite">
            {missing}
          </p>
          <Button type="submit" kind="primary" disabled={!isReady} isBusy={isBusy}>
            Explain
          </Button>
        </div>
      </form>
    </Card>
  )
}

const rowLabels = {
  create: 'New record',
  change: 'Change',
  pasted: 'Record',
} as const

const rowHints = {
  create: 'The body of the request.',
  change: 'The body of the update. Without it the record stays as it is.',
  pasted: 'Stands for a stored record. Absent fields are empty.',
} as const

function RecordFields({
  draft,
  problems,
  onChange,
}: {
  readonly draft: Draft
  readonly problems: Problems
  readonly onChange: (change: Partial<Draft>) => void
}) {
  const { operation, source } = draft
  const isList = operation === 'list'
  const role = operation === 'create' ? 'create' : source === 'row' ? 'pasted' : 'change'
  return (
    <div className="rules-group">
      {hasRecord(draft) && (
        <Segments
          label={isList ? 'Is this record in the list?' : 'Record'}
          value={source}
          options={sources}
          onChange={(next) => onChange({ source: next })}
        />
      )}
      {hasRecord(draft) && source === 'id' && (
        <TextField
          label="Record id"
          {...(isList && { hint: 'Optional.' })}
          value={draft.id}
          maxLength={128}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange({ id: event.target.value })}
        />
      )}
      {hasRow(draft) && (
        <JsonField
          label={rowLabels[role]}
          hint={rowHints[role]}
          placeholder={'{ "title": "…" }'}
          value={draft.row}
          problem={problems.row}
          onChange={(row) => onChange({ row })}
        />
      )}
      {isList && (
        <details className="rules-more">
          <summary>Filter and order</summary>
          <div className="rules-group">
            <JsonField
              label="Filter"
              placeholder={'[["published", "==", true]]'}
              value={draft.filter}
              problem={problems.filter}
              onChange={(filter) => onChange({ filter })}
            />
            <TextField
              label="Sort"
              placeholder="createdAt:desc"
              value={draft.sort}
              maxLength={500}
              onChange={(event) => onChange({ sort: event.target.value })}
            />
          </div>
        </details>
      )}
    </div>
  )
}
