/** The choice of a table. */
import { Field } from '../../design/field.tsx'
import { Select } from '../../design/select.tsx'
import type { Draft } from './question.ts'
import type { MatrixTable } from './requests.ts'

/** Separates namespace and table in the values of the list; neither can contain it. */
const separator = '.'

export function TableField({
  tables,
  draft,
  onChange,
}: {
  readonly tables: readonly MatrixTable[]
  readonly draft: Pick<Draft, 'namespace' | 'table'>
  readonly onChange: (change: Pick<Draft, 'namespace' | 'table'>) => void
}) {
  return (
    <Field label="Table">
      {({ id }) => (
        <Select
          id={id}
          label="Table"
          value={draft.table === '' ? '' : `${draft.namespace}${separator}${draft.table}`}
          placeholder="Choose a table…"
          options={tables.map(({ namespace, name }) => ({
            value: `${namespace}${separator}${name}`,
            label: `${namespace}.${name}`,
          }))}
          onChange={(value) => {
            const at = value.indexOf(separator)
            onChange({ namespace: value.slice(0, at), table: value.slice(at + 1) })
          }}
        />
      )}
    </Field>
  )
}
