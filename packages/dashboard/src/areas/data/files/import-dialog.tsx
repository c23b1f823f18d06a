/** Imports a file into a table: the file, the fields of its columns, a check of every line, and the import. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { RecordFormat } from '../../../../../server/src/query/record-files/record-text.ts'
import type { TableDescription } from '../../../app/queries.ts'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field } from '../../../design/field.tsx'
import { Icon } from '../../../design/icons.tsx'
import { Select } from '../../../design/select.tsx'
import type { TableAddress } from '../location.ts'
import { ImportResult } from './import-result.tsx'
import { type ImportInput, type ImportProgress, runImport } from './import-run.ts'
import { findTwice, MappingTable } from './mapping-table.tsx'
import {
  type Delimiter,
  delimiters,
  formatOf,
  guessDelimiter,
  guessMapping,
  type Head,
  type Mapping,
  parseHead,
  readHeadText,
} from './source-file.ts'

export interface ImportDialogProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly onClose: () => void
  /** Records were stored. */
  readonly onChanged: () => void
}

interface Chosen {
  readonly file: File
  readonly text: string
  readonly format: RecordFormat
  readonly delimiter: Delimiter
  readonly head: Head | null
  /** Why the beginning cannot be read. */
  readonly error: unknown
  readonly mapping: Mapping
}

function chosenOf(
  file: File,
  text: string,
  format: RecordFormat,
  delimiter: Delimiter,
  table: TableDescription,
): Chosen {
  const base = { file, text, format, delimiter }
  try {
    const head = parseHead(text, format, delimiter)
    return { ...base, head, error: null, mapping: guessMapping(head.columns, table) }
  } catch (error) {
    return { ...base, head: null, error, mapping: {} }
  }
}

export function ImportDialog({ address, table, onClose, onChanged }: ImportDialogProps) {
  const [chosen, setChosen] = useState<Chosen | null>(null)
  const [target, setTarget] = useState<string | null>(null)
  const [run, setRun] = useState<{ readonly isDryRun: boolean; readonly progress: ImportProgress } | null>(null)
  const [error, setError] = useState<unknown>(null)
  const running = useRef<AbortController | null>(null)
  const [isBusy, setBusy] = useState(false)
  // A dialog that is closed imports nothing more.
  useEffect(() => () => running.current?.abort(), [])

  const choose = async (file: File): Promise<void> => {
    setRun(null)
    setError(null)
    try {
      const text = await readHeadText(file)
      setChosen(chosenOf(file, text, formatOf(file.name), guessDelimiter(text), table))
    } catch (failure) {
      setError(failure)
    }
  }
  const perform = async (isDryRun: boolean): Promise<void> => {
    if (!chosen) return
    const controller = new AbortController()
    running.current = controller
    setError(null)
    setBusy(true)
    const { file, format, delimiter, mapping } = chosen
    const input: ImportInput = { address, table, file, format, delimiter, mapping, conflictTarget: target, isDryRun }
    let stored = 0
    try {
      await runImport(input, controller.signal, (progress) => {
        stored = progress.inserted + progress.updated
        setRun({ isDryRun, progress })
      })
    } catch (failure) {
      if (!controller.signal.aborted) setError(failure)
    }
    setBusy(false)
    if (!isDryRun && stored > 0) onChanged()
  }
  const twice = chosen ? findTwice(chosen.mapping) : null
  const isMapped = chosen !== null && Object.values(chosen.mapping).some((name) => name !== null)
  const isReady = chosen?.head !== null && isMapped && twice === null && !isBusy
  return (
    <Dialog isOpen onClose={onClose} size="large" isSticky title={`Import into ${table.name}`}>
      <div className="stack">
        <FileChooser file={chosen?.file ?? null} isDisabled={isBusy} onChoose={(file) => void choose(file)} />
        {chosen && (
          <fieldset className="data-import-options" disabled={isBusy}>
            <legend className="visually-hidden">How the file is read</legend>
            <Choice label="Format">
              {(id) => (
                <Select
                  id={id}
                  value={chosen.format}
                  options={[
                    { value: 'csv', label: 'CSV' },
                    { value: 'ndjson', label: 'NDJSON' },
                    { value: 'json', label: 'JSON' },
                  ]}
                  onChange={(format) => setChosen(chosenOf(chosen.file, chosen.text, format, chosen.delimiter, table))}
                />
              )}
            </Choice>
            {chosen.format === 'csv' && (
              <Choice label="Between cells">
                {(id) => (
                  <Select
                    id={id}
                    value={chosen.delimiter}
                    options={delimiters}
                    onChange={(next) => setChosen(chosenOf(chosen.file, chosen.text, 'csv', next, table))}
                  />
                )}
              </Choice>
            )}
            <Choice label="Existing records">
              {(id) => (
                <Select
                  id={id}
                  value={target ?? ''}
                  options={[
                    { value: '', label: 'Insert only' },
                    ...uniqueFields(table).map((value) => ({ value, label: `Update by ${value}` })),
                  ]}
                  onChange={(next) => setTarget(next === '' ? null : next)}
                />
              )}
            </Choice>
          </fieldset>
        )}
        {chosen?.error != null && <ErrorNote error={chosen.error} />}
        {chosen?.head && (
          <MappingTable
            table={table}
            head={chosen.head}
            mapping={chosen.mapping}
            onChange={(mapping) => {
              setRun(null)
              setChosen({ ...chosen, mapping })
            }}
          />
        )}
        {twice !== null && <p className="data-import-warning">Two columns are the field {twice}.</p>}
        {run && chosen && <ImportResult {...run} size={chosen.file.size} isBusy={isBusy} table={table.name} />}
        {error !== null && <ErrorNote error={error} onRetry={() => void perform(run?.isDryRun ?? true)} />}
        <div className="button-row">
          {isBusy ? (
            <Button onClick={() => running.current?.abort()}>Cancel</Button>
          ) : (
            <Button onClick={onClose}>Close</Button>
          )}
          <Button disabled={!isReady} onClick={() => void perform(true)}>
            Check every line
          </Button>
          <Button kind="primary" icon="upload" disabled={!isReady} onClick={() => void perform(false)}>
            Import
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

const uniqueFields = ({ fields }: TableDescription): readonly string[] => [
  'id',
  ...Object.keys(fields).filter((name) => name !== 'id' && fields[name]?.unique),
]

const Choice = ({ label, children }: { readonly label: string; readonly children: (id: string) => ReactNode }) => (
  <Field label={label}>{({ id }) => children(id)}</Field>
)

interface FileChooserProps {
  readonly file: File | null
  readonly isDisabled: boolean
  readonly onChoose: (file: File) => void
}

/** Bytes as people read them. */
export function describeBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB']
  let value = bytes
  let at = 0
  for (; value >= 1000 && at < units.length - 1; at++) value /= 1000
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`
}

function FileChooser({ file, isDisabled, onChoose }: FileChooserProps) {
  const [isOver, setOver] = useState(false)
  return (
    <label
      className={isOver ? 'data-import-file is-over' : 'data-import-file'}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        const [dropped] = event.dataTransfer.files
        if (dropped && !isDisabled) onChoose(dropped)
      }}
    >
      <Icon name={file ? 'file' : 'upload'} />
      <span className="data-import-file-text">
        <strong dir="auto">{file ? file.name : 'Choose a file, or drop it here'}</strong>
        <span>{file ? describeBytes(file.size) : 'CSV, NDJSON or JSON of any size; it is read in slices'}</span>
      </span>
      <input
        className="visually-hidden"
        type="file"
        aria-label="File"
        accept=".csv,.tsv,.ndjson,.jsonl,.json,text/csv,application/json"
        disabled={isDisabled}
        onChange={(event) => {
          const [next] = event.target.files ?? []
          if (next) onChoose(next)
          event.target.value = ''
        }}
      />
    </label>
  )
}
