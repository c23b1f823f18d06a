/** One cell of the matrix at the side: who the caller is, on what it depends, and the way into the playground. */
import { Link } from 'wouter'
import { CodeBlock } from '../../design/code-block.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { playgroundPath } from './matrix-link.ts'
import type { MatrixCaller, MatrixOperation, MatrixTable } from './requests.ts'

export const callerTitles: Readonly<Record<MatrixCaller, string>> = {
  anonymous: 'Anonymous',
  user: 'User',
  owner: 'Owner',
  otherUser: 'Other user',
  otherTenant: 'Other tenant',
}

export const callerTexts: Readonly<Record<MatrixCaller, string>> = {
  anonymous: 'Without credentials.',
  user: 'Any signed-in user of the role “user”.',
  owner: 'A user whose id is in every field that the rule compares with it.',
  otherUser: 'A user whose id no record has.',
  otherTenant: 'A user whose claims no record has either, and whom the instance of the record does not admit.',
}

export const labelOf = ({ kind, namespace, name }: MatrixTable): string =>
  kind === 'bucket' ? `bucket ${name}` : `${namespace}.${name}`

const meanings = {
  always: 'Always allowed, for every record.',
  never: 'Never allowed, for no record.',
  depends: 'Allowed for records for which this is true:',
} as const

export interface CellPanelProps {
  readonly table: MatrixTable | undefined
  readonly operation: MatrixOperation | undefined
  readonly caller: MatrixCaller | undefined
  readonly onClose: () => void
}

export function CellPanel({ table, operation, caller, onClose }: CellPanelProps) {
  if (!table || !operation || !caller) return null
  const { access, condition } = table.operations[operation][caller]
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={`${labelOf(table)}: ${operation} as ${callerTitles[caller].toLowerCase()}`}
      shape="panel"
      isModal={false}
      footer={
        table.kind === 'table' && (
          <Link className="button button-primary button-medium" href={playgroundPath(table, { operation, caller })}>
            Try in the playground
          </Link>
        )
      }
    >
      <div className="rules-panel">
        <p className="rules-quiet">{callerTexts[caller]}</p>
        <p>{meanings[access]}</p>
        {condition !== null && <CodeBlock code={condition} />}
        {table.reads.length > 0 && (
          <p>
            The rules of this table also read <code>{table.reads.join(', ')}</code> of the caller, so other users may
            get another answer.
          </p>
        )}
        {table.failures.map((failure) => (
          <p key={failure} className="rules-failure">
            A rule failed for a sample caller, and so denies: <code>{failure}</code>
          </p>
        ))}
      </div>
    </Dialog>
  )
}
