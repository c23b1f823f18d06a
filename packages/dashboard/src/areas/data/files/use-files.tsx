/** Import and export of a view: the actions of its menu, and their dialogs. */
import { type ReactNode, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import type { MenuAction } from '../../../design/menu.tsx'
import type { TableAddress } from '../location.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { ExportDialog } from './export-dialog.tsx'
import { ImportDialog } from './import-dialog.tsx'

export interface FilesView {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly query: RowQuery
  readonly total: number | null
  readonly shown: readonly string[]
  readonly canWrite: boolean
  readonly canRead: boolean
  /** The rows of the table have changed. */
  readonly onChanged: () => void
}

export function useFiles(view: FilesView): { readonly actions: readonly MenuAction[]; readonly content: ReactNode } {
  const { canWrite, canRead, onChanged } = view
  const [open, setOpen] = useState<'import' | 'export' | null>(null)
  const close = (): void => setOpen(null)
  const actions: readonly MenuAction[] = [
    ...(canWrite ? [{ label: 'Import…', icon: 'upload', run: () => setOpen('import') } as const] : []),
    ...(canRead
      ? [
          {
            label: 'Export…',
            icon: 'download',
            run: () => setOpen('export'),
          } as const,
        ]
      : []),
  ]
  const content = (
    <>
      {open === 'import' && <ImportDialog {...view} onClose={close} onChanged={onChanged} />}
      {open === 'export' && <ExportDialog {...view} onClose={close} />}
    </>
  )
  return { actions, content }
}
