/** The saved views of a table: choose, save, rename, delete, and which one is shown first. */
import { type FormEvent, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import type { UrlState } from '../../../app/url-state.ts'
import { Badge } from '../../../design/badge.tsx'
import { Button, IconButton } from '../../../design/button.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Input } from '../../../design/field.tsx'
import { Menu } from '../../../design/menu.tsx'
import { Popover } from '../../../design/popover.tsx'
import {
  type SavedView,
  settingsName,
  type TableViews,
  useViewChanges,
  viewNameCharsMax,
  viewParameters,
} from './requests.ts'

export interface ViewsPopoverProps {
  readonly table: TableDescription
  readonly views: TableViews
  readonly url: UrlState
  /** A viewer chooses only. */
  readonly canSave: boolean
}

/** The view that the URL shows, in one order of the parameters. */
export function searchOf(url: UrlState): string {
  const given = viewParameters.flatMap((name) => {
    const value = url.get(name)
    return value === null ? [] : [[name, value]]
  })
  return new URLSearchParams(given).toString()
}

export function showView(url: UrlState, { search }: SavedView, options?: { readonly replace: boolean }): void {
  const given = new URLSearchParams(search)
  url.set({ ...Object.fromEntries(viewParameters.map((name) => [name, given.get(name)])), row: null }, options)
}

export function ViewsPopover({ table, views: { views, settings }, url, canSave }: ViewsPopoverProps) {
  const [isOpen, setOpen] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [renamed, setRenamed] = useState<SavedView | null>(null)
  const changes = useViewChanges(table, settings)
  const search = searchOf(url)
  const current = views.find((view) => view.search === search)
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setError(null)
    setRenamed(null)
    try {
      await work()
    } catch (failure) {
      setError(failure)
    }
  }
  const setDefault = (name: string | null) => run(() => changes.saveSettings({ ...settings, defaultView: name }))
  return (
    <Popover
      title="Views"
      isOpen={isOpen}
      onOpenChange={setOpen}
      trigger={
        <Button size="small" icon="eye">
          {current?.name ?? 'Views'}
        </Button>
      }
    >
      <div className="data-views">
        {error !== null && <ErrorNote error={error} />}
        {views.length === 0 && (
          <p className="data-views-none">A view keeps filter, order, search and columns under a name.</p>
        )}
        <ul aria-label="Saved views">
          {views.map((view) => (
            <li key={view.name}>
              <button
                type="button"
                className="data-choice data-view"
                aria-current={view === current || undefined}
                onClick={() => {
                  showView(url, view)
                  setOpen(false)
                }}
              >
                <span dir="auto">{view.name}</span>
                {settings.defaultView === view.name && <Badge>default</Badge>}
              </button>
              {canSave && (
                <Menu
                  align="end"
                  trigger={<IconButton icon="more" label={`Actions of ${view.name}`} size="small" />}
                  actions={[
                    {
                      label: 'Replace with what is shown',
                      icon: 'check',
                      run: () => void run(() => changes.save({ name: view.name, search })),
                    },
                    { label: 'Rename', icon: 'edit', run: () => setRenamed(view) },
                    settings.defaultView === view.name
                      ? { label: 'Do not show first', icon: 'close', run: () => void setDefault(null) }
                      : { label: 'Show first', icon: 'home', run: () => void setDefault(view.name) },
                    null,
                    {
                      label: 'Delete',
                      icon: 'trash',
                      isDangerous: true,
                      run: () => void run(() => changes.remove(view.name)),
                    },
                  ]}
                />
              )}
            </li>
          ))}
        </ul>
        {canSave && (
          <NameForm
            key={renamed?.name ?? ''}
            label={renamed ? `New name of ${renamed.name}` : 'Name of a new view'}
            action={renamed ? 'Rename' : 'Save view'}
            initial={renamed?.name ?? ''}
            taken={views.map(({ name }) => name)}
            onSubmit={(name) => run(() => (renamed ? changes.rename(renamed, name) : changes.save({ name, search })))}
          />
        )}
      </div>
    </Popover>
  )
}

interface NameFormProps {
  readonly label: string
  readonly action: string
  readonly initial: string
  readonly taken: readonly string[]
  readonly onSubmit: (name: string) => Promise<void>
}

function NameForm({ label, action, initial, taken, onSubmit }: NameFormProps) {
  const [text, setText] = useState(initial)
  const name = text.trim()
  const isTaken = taken.includes(name)
  const isInvalid = name === '' || name.includes('/') || name === settingsName || isTaken
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (isInvalid) return
    void onSubmit(name).then(() => setText(''))
  }
  return (
    <form className="data-view-form" onSubmit={submit}>
      <Input
        aria-label={label}
        placeholder={label}
        maxLength={viewNameCharsMax}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit" size="small" disabled={isInvalid}>
        {action}
      </Button>
      {isTaken && <p className="data-view-taken">There is a view of this name.</p>}
    </form>
  )
}
