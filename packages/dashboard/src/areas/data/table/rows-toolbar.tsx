/** The toolbar of the rows: search, filter, columns, copying, and what can be done with the selection. */
import { type ReactNode, useEffect, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { SearchInput } from '../../../design/field.tsx'
import { Icon } from '../../../design/icons.tsx'
import { Menu, type MenuActions } from '../../../design/menu.tsx'
import { Spacer, Toolbar } from '../../../design/page.tsx'
import type { Condition, RowQuery } from '../rows/row-query.ts'
import { ColumnsPopover } from './columns-popover.tsx'
import { FilterPopover } from './filter-popover.tsx'
import { describeCondition } from './operators.ts'

export interface RowsToolbarProps {
  readonly table: TableDescription
  readonly fields: readonly string[]
  readonly query: RowQuery
  readonly shown: readonly string[] | null
  /** Null while it is unknown. */
  readonly total: number | null
  /** Whether the position of the rows in view among all of them is estimated. */
  readonly isEstimated: boolean
  readonly selectedCount: number
  readonly canWrite: boolean
  readonly copyActions: MenuActions
  /** What is done with all records of the view, or from and to files. */
  readonly moreActions: MenuActions
  readonly onFilter: (conditions: readonly Condition[]) => void
  readonly onSearch: (words: string) => void
  readonly onColumns: (shown: readonly string[] | null) => void
  readonly onReload: () => void
  readonly liveSwitch: ReactNode
  readonly viewsPopover: ReactNode
  readonly onInsert: () => void
  readonly onDelete: () => void
  readonly onClearSelection: () => void
}

/** A search begins after a pause in typing. */
const searchDelayMs = 250

function SearchField({ words, onSearch }: { readonly words: string; readonly onSearch: (words: string) => void }) {
  const [text, setText] = useState(words)
  useEffect(() => setText(words), [words])
  useEffect(() => {
    if (text === words) return
    const timer = setTimeout(() => onSearch(text), searchDelayMs)
    return () => clearTimeout(timer)
  }, [text, words, onSearch])
  return <SearchInput className="data-search" label="Search" value={text} onChange={setText} />
}

export function RowsToolbar(props: RowsToolbarProps) {
  const { table, fields, query, shown, total, selectedCount, canWrite } = props
  return (
    <div className="data-toolbar">
      <Toolbar label="Rows">
        {selectedCount > 0 ? (
          <>
            <strong className="data-selected">{selectedCount.toLocaleString('en')} selected</strong>
            <Button size="small" kind="quiet" onClick={props.onClearSelection}>
              Clear
            </Button>
            {canWrite && (
              <Button size="small" icon="trash" onClick={props.onDelete}>
                Delete
              </Button>
            )}
          </>
        ) : (
          <>
            {table.search.length > 0 && <SearchField words={query.words ?? ''} onSearch={props.onSearch} />}
            <FilterPopover table={table} fields={fields} conditions={query.filter} onApply={props.onFilter} />
            <ColumnsPopover fields={fields} shown={shown} onChange={props.onColumns} />
            {props.viewsPopover}
          </>
        )}
        <Spacer />
        {props.isEstimated && (
          <span className="data-estimated" title="Counting that many records takes too long. These are near the place.">
            position estimated
          </span>
        )}
        <output className="data-total">
          {total === null ? '' : total === 1 ? '1 record' : `${total.toLocaleString('en')} records`}
        </output>
        {props.liveSwitch}
        <IconButton size="small" icon="refresh" label="Reload" onClick={props.onReload} />
        <Menu
          align="end"
          trigger={<IconButton size="small" icon="code" label="Copy this view" />}
          actions={props.copyActions}
        />
        {props.moreActions.length > 0 && (
          <Menu
            align="end"
            trigger={<IconButton size="small" icon="more" label="All records" />}
            actions={props.moreActions}
          />
        )}
        {canWrite && (
          <Button size="small" kind="primary" icon="plus" onClick={props.onInsert}>
            Insert
          </Button>
        )}
      </Toolbar>
      {query.filter.length > 0 && (
        <ul className="data-conditions" aria-label="Conditions">
          {query.filter.map((condition, at) => (
            <li key={JSON.stringify(condition)}>
              <button
                type="button"
                className="data-condition"
                aria-label={`Remove the condition ${describeCondition(condition)}`}
                onClick={() => props.onFilter(query.filter.filter((_, other) => other !== at))}
              >
                <span dir="auto">{describeCondition(condition)}</span>
                <Icon name="close" size={12} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
