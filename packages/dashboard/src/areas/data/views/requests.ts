/** Saved views of a table, and what an administrator has set for it; both are kept on the server. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { TableDescription } from '../../../app/queries.ts'
import { api } from '../../../app/transport.ts'

/** The parameters of the URL that make a view. */
export const viewParameters = ['filter', 'sort', 'columns', 'q'] as const

export interface SavedView {
  readonly name: string
  /** The parameters of the URL, as a query string. */
  readonly search: string
}

export interface TableSettings {
  /** The name of the view that is shown where the URL names none. */
  readonly defaultView: string | null
  readonly widths: Readonly<Record<string, number>>
}

export interface TableViews {
  readonly views: readonly SavedView[]
  readonly settings: TableSettings
}

/** Under this name the settings of the table are saved; no view has it. */
export const settingsName = '$table'
export const viewNameCharsMax = 64

const noSettings: TableSettings = { defaultView: null, widths: {} }

type Address = Pick<TableDescription, 'namespace' | 'name'>

const pathOf = ({ namespace, name }: Address, view?: string): string =>
  `/api/views/${encodeURIComponent(`data ${namespace}.${name}`)}${view === undefined ? '' : `/${encodeURIComponent(view)}`}`

const keyOf = ({ namespace, name }: Address): readonly string[] => ['views', 'data', namespace, name]

interface Stored {
  readonly name: string
  readonly content: Readonly<Record<string, unknown>>
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is stored may be of another version of the page. */
function settingsOf({ defaultView, widths }: Stored['content']): TableSettings {
  const numbers = Object.entries(isObject(widths) ? widths : {}).filter(([, width]) => typeof width === 'number')
  return {
    defaultView: typeof defaultView === 'string' ? defaultView : null,
    widths: Object.fromEntries(numbers) as Record<string, number>,
  }
}

async function readViews(table: Address, signal: AbortSignal): Promise<TableViews> {
  const { views } = await api.get<{ readonly views: readonly Stored[] }>(pathOf(table), { signal })
  const settings = views.find(({ name }) => name === settingsName)
  return {
    views: views.flatMap(({ name, content: { search } }) => (typeof search === 'string' ? [{ name, search }] : [])),
    settings: settings ? settingsOf(settings.content) : noSettings,
  }
}

export const useTableViews = (table: Address) =>
  useQuery({ queryKey: keyOf(table), queryFn: ({ signal }) => readViews(table, signal) })

export interface ViewChanges {
  save(view: SavedView): Promise<unknown>
  /** Also where the view is the default one. */
  rename(view: SavedView, name: string): Promise<unknown>
  remove(name: string): Promise<unknown>
  saveSettings(settings: TableSettings): Promise<unknown>
}

export function useViewChanges(table: Address, settings: TableSettings): ViewChanges {
  const queries = useQueryClient()
  const { mutateAsync } = useMutation({
    mutationFn: (work: () => Promise<unknown>) => work(),
    onSettled: () => queries.invalidateQueries({ queryKey: keyOf(table) }),
  })
  const put = (name: string, body: object): Promise<unknown> => api.put(pathOf(table, name), { body })
  const saveSettings = (next: TableSettings): Promise<unknown> => put(settingsName, next)
  const isDefault = (name: string): boolean => settings.defaultView === name
  return {
    save: ({ name, search }) => mutateAsync(() => put(name, { search })),
    rename: ({ name: before, search }, name) =>
      mutateAsync(async () => {
        await put(name, { search })
        if (isDefault(before)) await saveSettings({ ...settings, defaultView: name })
        await api.delete(pathOf(table, before))
      }),
    remove: (name) =>
      mutateAsync(async () => {
        if (isDefault(name)) await saveSettings({ ...settings, defaultView: null })
        await api.delete(pathOf(table, name))
      }),
    saveSettings: (next) => mutateAsync(() => saveSettings(next)),
  }
}
