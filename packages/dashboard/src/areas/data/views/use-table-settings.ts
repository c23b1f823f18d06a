/** The widths of columns, which are saved after a pause, and the view that is shown first. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { usePermits } from '../../../app/permissions.ts'
import type { TableDescription } from '../../../app/queries.ts'
import type { UrlState } from '../../../app/url-state.ts'
import { type TableViews, useTableViews, useViewChanges } from './requests.ts'
import { searchOf, showView } from './views-popover.tsx'

/** A column is resized in many steps. */
const saveDelayMs = 800

export interface KeptSettings {
  readonly views: TableViews
  readonly canSave: boolean
  readonly widths: Readonly<Record<string, number>>
  resize(name: string, width: number): void
}

const noViews: TableViews = { views: [], settings: { defaultView: null, widths: {} } }

export function useTableSettings(table: TableDescription, url: UrlState): KeptSettings {
  const canSave = usePermits()('dashboard:views:*:write')
  const { data: views = noViews } = useTableViews(table)
  const { saveSettings } = useViewChanges(table, views.settings)
  const [own, setOwn] = useState<Readonly<Record<string, number>>>({})
  const widths = useMemo(() => ({ ...views.settings.widths, ...own }), [views, own])
  const latest = useRef({ widths, views, saveSettings })
  latest.current = { widths, views, saveSettings }

  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const save = useCallback((): void => {
    clearTimeout(timer.current)
    if (timer.current === undefined) return
    timer.current = undefined
    const { widths, views, saveSettings } = latest.current
    // Widths that are not saved are those of this page only.
    saveSettings({ ...views.settings, widths }).catch(() => {})
  }, [])
  useEffect(() => save, [save])
  const resize = useCallback(
    (name: string, width: number): void => {
      setOwn((before) => ({ ...before, [name]: width }))
      if (!canSave) return
      clearTimeout(timer.current)
      timer.current = setTimeout(save, saveDelayMs)
    },
    [canSave, save],
  )

  // A URL that names no view shows the default one, when the table is opened and not again.
  const isBare = useRef(searchOf(url) === '' && url.get('row') === null)
  const first = views.views.find(({ name }) => name === views.settings.defaultView)
  useEffect(() => {
    if (!isBare.current || !first) return
    isBare.current = false
    showView(url, first, { replace: true })
  }, [first, url])
  return { views, canSave, widths, resize }
}
