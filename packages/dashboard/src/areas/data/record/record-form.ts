/** The state of the form of a record: a text per field, what it means, and what has changed. */
import { useCallback, useMemo, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import type { Row } from '../rows/row.ts'
import { type Draft, draftOf, type EditorKind, editorKind, isReadOnly, parseDraft } from './draft.ts'
import type { Values } from './writes.ts'

export interface FormField {
  readonly name: string
  readonly kind: EditorKind
  readonly draft: Draft
  readonly isReadOnly: boolean
  readonly isChanged: boolean
  /** Why the text has no value. */
  readonly error: string | null
}

export interface RecordForm {
  readonly fields: readonly FormField[]
  /** The values of changed fields; null if one of them is invalid. */
  readonly changes: Values | null
  readonly isChanged: boolean
  set(name: string, draft: Draft): void
  /** Forgets all changes. */
  reset(): void
}

/** The drafts that differ from the record, by name. */
type Drafts = Readonly<Record<string, Draft>>

export function useRecordForm(table: TableDescription, row: Row | null, initial: Values): RecordForm {
  const [drafts, setDrafts] = useState<Drafts>({})
  const isNew = row === null
  // The text of a value of megabytes takes a while, so it is not made again with every change of a draft.
  const stored = useMemo(() => {
    const values = row?.values ?? initial
    const names = [...new Set([...Object.keys(table.fields), ...Object.keys(values)])]
    return new Map(names.map((name) => [name, draftOf(editorKind(name, table.fields[name] ?? null), values[name])]))
  }, [table, row, initial])
  const set = useCallback((name: string, draft: Draft) => setDrafts((before) => ({ ...before, [name]: draft })), [])
  const reset = useCallback(() => setDrafts({}), [])
  return useMemo(() => {
    const changes: Record<string, unknown> = {}
    let isValid = true
    const fields = [...new Set([...stored.keys(), ...Object.keys(drafts)])].map((name): FormField => {
      const field = table.fields[name] ?? null
      const kind = editorKind(name, field)
      const before = stored.get(name) ?? null
      const draft = name in drafts ? (drafts[name] as Draft) : before
      const isChanged = isNew ? draft !== null : draft !== before
      const parsed = isChanged ? parseDraft(kind, draft, field) : null
      if (parsed && 'value' in parsed) changes[name] = parsed.value
      if (parsed && 'error' in parsed) isValid = false
      return {
        name,
        kind,
        draft,
        isReadOnly: isReadOnly(name, field, isNew),
        isChanged,
        error: parsed && 'error' in parsed ? parsed.error : null,
      }
    })
    return {
      fields,
      changes: isValid ? changes : null,
      isChanged: fields.some((field) => field.isChanged && !field.isReadOnly && (!isNew || field.name in drafts)),
      set,
      reset,
    }
  }, [table, stored, drafts, isNew, set, reset])
}
