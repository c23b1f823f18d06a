/** The folders and files of one folder. */
import { Link } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { Checkbox } from '../../design/field.tsx'
import { formatBytes } from '../../design/format/number.ts'
import { formatAge } from '../../design/format-time.ts'
import { Icon } from '../../design/icons.tsx'
import { Card } from '../../design/page.tsx'
import { type Column, Table } from '../../design/table.tsx'
import type { Entry } from './folders.ts'

export interface FileTableProps {
  readonly entries: readonly Entry[]
  /** Whether the last page is loaded, so that counts of folders are final. */
  readonly isComplete: boolean
  /** Keys; null for those who may do nothing with a selection. */
  readonly selected: ReadonlySet<string> | null
  readonly onSelect: (selected: ReadonlySet<string>) => void
  /** The key of the file whose panel is open. */
  readonly open: string | null
}

const countOf = (count: number, isComplete: boolean): string =>
  `${count.toLocaleString('en')}${isComplete ? '' : '+'} ${count === 1 && isComplete ? 'file' : 'files'}`

export function FileTable({ entries, isComplete, selected, onSelect, open }: FileTableProps) {
  const url = useUrlState()
  const columns: readonly Column<Entry>[] = [
    ...(selected === null ? [] : [selectionColumn(entries, selected, onSelect)]),
    {
      id: 'name',
      title: 'Name',
      cell: (entry) => (
        <Link
          className="files-name"
          href={url.href(entry.kind === 'folder' ? { prefix: entry.prefix, file: null } : { file: entry.file.key })}
        >
          <Icon name={entry.kind === 'folder' ? 'files' : 'file'} />
          <span>{entry.name}</span>
        </Link>
      ),
    },
    {
      id: 'size',
      title: 'Size',
      isNumeric: true,
      cell: (entry) => (entry.kind === 'folder' ? countOf(entry.count, isComplete) : formatBytes(entry.file.size)),
    },
    {
      id: 'type',
      title: 'Type',
      isOptional: true,
      cell: (entry) => (entry.kind === 'folder' ? 'Folder' : entry.file.contentType),
    },
    {
      id: 'uploaded',
      title: 'Uploaded',
      isOptional: true,
      cell: (entry) => (entry.kind === 'folder' ? '' : formatAge(entry.file.uploaded)),
    },
  ]
  return (
    <Card isFlush>
      <Table
        label="Files"
        rows={entries}
        columns={columns}
        keyOf={(entry) => (entry.kind === 'folder' ? entry.prefix : entry.file.key)}
        isSelected={(entry) =>
          entry.kind === 'file' && (entry.file.key === open || selected?.has(entry.file.key) === true)
        }
      />
    </Card>
  )
}

function selectionColumn(
  entries: readonly Entry[],
  selected: ReadonlySet<string>,
  onSelect: FileTableProps['onSelect'],
): Column<Entry> {
  const keys = entries.flatMap((entry) => (entry.kind === 'file' ? [entry.file.key] : []))
  const isAll = keys.length > 0 && selected.size === keys.length
  const toggle = (key: string, isOn: boolean): void => {
    const next = new Set(selected)
    if (isOn) next.add(key)
    else next.delete(key)
    onSelect(next)
  }
  return {
    id: 'selection',
    title: (
      <Checkbox
        label="Select all files"
        isLabelHidden
        disabled={keys.length === 0}
        checked={isAll}
        isMixed={selected.size > 0 && !isAll}
        onChange={(isOn) => onSelect(new Set(isOn ? keys : []))}
      />
    ),
    cell: (entry) =>
      entry.kind === 'file' && (
        <Checkbox
          label={`Select ${entry.name}`}
          isLabelHidden
          checked={selected.has(entry.file.key)}
          onChange={(isOn) => toggle(entry.file.key, isOn)}
        />
      ),
  }
}
