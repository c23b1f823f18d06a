/** What is done with all records of a view: import, export, and changes as a job of the server. */
import type { ReactNode } from 'react'
import { usePermits } from '../../../app/permissions.ts'
import type { TableDescription } from '../../../app/queries.ts'
import type { MenuActions } from '../../../design/menu.tsx'
import { useBulk } from '../bulk/use-bulk.tsx'
import { useFiles } from '../files/use-files.tsx'
import type { TableAddress } from '../location.ts'
import type { View } from './use-view.ts'

export function useAllRecords(
  address: TableAddress,
  table: TableDescription,
  { query, names, columns, cache }: View,
  canWrite: boolean,
): { readonly actions: MenuActions; readonly content: ReactNode } {
  const canRead = usePermits()(`db:table:${table.name}:read`)
  const shown = columns.map(({ name }) => name)
  const view = { address, table, query, names, shown, canWrite, onChanged: () => cache.invalidate() }
  const files = useFiles({ ...view, total: cache.total, canRead })
  const bulk = useBulk(view)
  return {
    actions: [...files.actions, ...(bulk.actions.length > 0 ? [null] : []), ...bulk.actions],
    content: (
      <>
        {bulk.content}
        {files.content}
      </>
    ),
  }
}
