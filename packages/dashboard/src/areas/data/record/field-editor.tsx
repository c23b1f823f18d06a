/** The control of one field, by type. It edits text; `draft` decides what the text means. */
import { type ClipboardEvent, lazy, Suspense, useState } from 'react'
import type { FieldDescription } from '../../../app/queries.ts'
import { Button } from '../../../design/button.tsx'
import type { ControlProps } from '../../../design/field.tsx'
import { Select } from '../../../design/select.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import type { TableAddress } from '../location.ts'
import type { Draft, EditorKind } from './draft.ts'
import { ReferenceEditor } from './reference-editor.tsx'

const JsonEditor = lazy(() =>
  import('../../../design/editor/json-editor.tsx').then((module) => ({ default: module.JsonEditor })),
)

export interface FieldEditorProps {
  readonly name: string
  readonly kind: EditorKind
  readonly field: FieldDescription | null
  readonly draft: Draft
  readonly control: ControlProps
  readonly isDisabled: boolean
  readonly address: TableAddress
  readonly onChange: (draft: Draft) => void
}

/** Longer texts are opened on request: a text area with a megabyte takes seconds to lay out. */
const charsShownAtOnce = 100_000
const startChars = 2_000

const maybeLong: ReadonlySet<EditorKind> = new Set(['text', 'line', 'json'])

/** Takes a long text that is pasted from the clipboard, before the browser lays it out. */
function takeLongPaste(event: ClipboardEvent, { draft, onChange }: FieldEditorProps): void {
  const { target } = event
  const text = event.clipboardData.getData('text/plain')
  if (text.length <= charsShownAtOnce) return
  event.preventDefault()
  event.stopPropagation()
  const isInput = target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement
  // What is selected in the editor of JSON is not known here: a text that long replaces all.
  const [start, end] = isInput ? [target.selectionStart ?? 0, target.selectionEnd ?? 0] : [0, draft?.length ?? 0]
  onChange((draft ?? '').slice(0, start) + text + (draft ?? '').slice(end))
}

export function FieldEditor(props: FieldEditorProps) {
  const { kind, draft } = props
  const [isWhole, setAll] = useState(false)
  if (draft !== null && draft.length > charsShownAtOnce && !isWhole && maybeLong.has(kind))
    return (
      <div className="record-long">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
        <pre tabIndex={0}>{draft.slice(0, startChars)}…</pre>
        <Button size="small" onClick={() => setAll(true)}>
          Show all {draft.length.toLocaleString('en')} characters
        </Button>
      </div>
    )
  if (!maybeLong.has(kind) || props.isDisabled) return <Editor {...props} />
  return (
    <div className="record-editor" onPasteCapture={(event) => takeLongPaste(event, props)}>
      <Editor {...props} />
    </div>
  )
}

const booleans = [
  { value: 'true', label: 'true' },
  { value: 'false', label: 'false' },
] as const

function Editor({ name, kind, field, draft, control, isDisabled, address, onChange }: FieldEditorProps) {
  const text = draft ?? ''
  const placeholder = draft === null ? 'null' : undefined
  if (kind === 'json')
    return (
      <Suspense fallback={<Skeleton lines={2} />}>
        <JsonEditor label={name} text={text} isReadOnly={isDisabled} onChange={onChange} />
      </Suspense>
    )
  if (kind === 'boolean' || kind === 'enum') {
    const options =
      kind === 'boolean' ? booleans : (field?.enum ?? []).map((one) => ({ value: String(one), label: String(one) }))
    return (
      <Select
        id={control.id}
        value={text}
        options={options}
        placeholder="null"
        disabled={isDisabled}
        onChange={onChange}
      />
    )
  }
  if (kind === 'geo') return <PointEditor text={text} control={control} isDisabled={isDisabled} onChange={onChange} />
  if (kind === 'reference' && field?.references !== undefined)
    return (
      <ReferenceEditor
        address={{ ...address, table: field.references }}
        text={text}
        control={control}
        isDisabled={isDisabled}
        onChange={onChange}
      />
    )
  if (kind === 'text' || /\n/.test(text))
    return (
      <textarea
        className="input"
        dir="auto"
        {...control}
        placeholder={placeholder}
        disabled={isDisabled}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
    )
  return (
    <input
      className="input"
      dir={kind === 'line' ? 'auto' : undefined}
      inputMode={kind === 'number' ? 'decimal' : undefined}
      spellCheck={kind === 'line' ? undefined : false}
      autoComplete="off"
      {...control}
      placeholder={kind === 'datetime' && draft !== null ? '2026-11-24T09:30:00Z' : placeholder}
      disabled={isDisabled}
      value={text}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function PointEditor({
  text,
  control,
  isDisabled,
  onChange,
}: Pick<FieldEditorProps, 'control' | 'isDisabled' | 'onChange'> & { readonly text: string }) {
  const [longitude = '', latitude = ''] = text.split(',').map((part) => part.trim())
  const change = (next: readonly [string, string]): void =>
    onChange(next.every((part) => part === '') ? null : next.join(', '))
  return (
    <div className="record-point">
      <input
        className="input"
        {...control}
        inputMode="decimal"
        placeholder="Longitude"
        disabled={isDisabled}
        value={longitude}
        onChange={(event) => change([event.target.value, latitude])}
      />
      <input
        className="input"
        aria-label="Latitude"
        inputMode="decimal"
        placeholder="Latitude"
        disabled={isDisabled}
        value={latitude}
        onChange={(event) => change([longitude, event.target.value])}
      />
    </div>
  )
}
