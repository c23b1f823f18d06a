/** Changes of a table's declaration as a patch of the configuration. In development mode only; the page stores nothing. */
import { useMemo } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import type { UrlState } from '../../../app/url-state.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { CodeBlock } from '../../../design/code-block.tsx'
import { Card } from '../../../design/page.tsx'
import { Patch } from '../../../design/patch/patch.tsx'
import type { TableAddress } from '../location.ts'
import { ChangeForm } from './change-form.tsx'
import { shapeNotes, shapeSteps } from './shape-patch.ts'
import { changesMax, parseChanges, type ShapeChange, shapeOf, shapeWith } from './table-shape.ts'

/** The parameter of the URL with the changes. */
export const shapeParameter = 'shape'

interface ShapeCardProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly url: UrlState
}

function describeChange(change: ShapeChange): string {
  switch (change.kind) {
    case 'add':
      return `Add the field ${change.field.name}`
    case 'rename':
      return `Rename ${change.from} to ${change.to}`
    case 'remove':
      return `Remove the field ${change.name}`
    case 'index':
      return `Add ${change.unique ? 'a unique' : 'an'} index of ${change.fields.join(', ')}`
    case 'unindex':
      return `Remove the index of ${change.fields.join(', ')}`
  }
}

export function ShapeCard({ address, table, url }: ShapeCardProps) {
  const text = url.get(shapeParameter)
  const before = useMemo(() => shapeOf(table), [table])
  const changes = useMemo(() => parseChanges(text, before), [text, before])
  const change = (next: readonly ShapeChange[]): void =>
    url.set({ [shapeParameter]: JSON.stringify(next) }, { replace: true })
  return (
    <Card
      title="Change the table"
      actions={
        <Button size="small" onClick={() => url.set({ [shapeParameter]: null })}>
          Close
        </Button>
      }
    >
      <div className="stack">
        <p className="schema-note">
          The declaration of the table is in <code>plinth.config.ts</code>, and nowhere else: this page changes nothing.
          Put the changes together here and copy the patch; the server migrates the table when the file is saved.
        </p>
        {changes.length > 0 && (
          <ul className="shape-changes" aria-label="Changes">
            {changes.map((one, at) => (
              <li key={JSON.stringify(one)}>
                <span>{describeChange(one)}</span>
                <IconButton
                  icon="close"
                  size="small"
                  label={`Leave out: ${describeChange(one)}`}
                  // Later changes may be of what this one has made; those that no longer apply are left out with it.
                  onClick={() => change(changes.toSpliced(at, 1))}
                />
              </li>
            ))}
          </ul>
        )}
        {changes.length < changesMax && (
          <ChangeForm
            before={before}
            current={shapeWith(before, changes)}
            onAdd={(next) => change([...changes, next])}
          />
        )}
        {changes.length > 0 && <Steps address={address} table={table} changes={changes} />}
      </div>
    </Card>
  )
}

interface StepsProps extends Pick<ShapeCardProps, 'address' | 'table'> {
  readonly changes: readonly ShapeChange[]
}

function Steps({ address, table, changes }: StepsProps) {
  const steps = shapeSteps(address, shapeOf(table), changes)
  return (
    <>
      <ol className="shape-steps">
        {steps.map((step, at) => (
          <li key={at}>
            {step.kind === 'patch' ? (
              <Patch path={step.path} parts={step.parts} />
            ) : (
              <>
                <p className="schema-note">{step.note}</p>
                <CodeBlock label="Commands" code={step.text} />
              </>
            )}
          </li>
        ))}
      </ol>
      {shapeNotes(changes).map((note) => (
        <p key={note} className="shape-note">
          {note}
        </p>
      ))}
    </>
  )
}
