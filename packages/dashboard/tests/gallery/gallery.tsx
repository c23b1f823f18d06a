/** Every base component in its states, for screenshots and for checks of accessibility. */
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Badge } from '../../src/design/badge.tsx'
import { Button, IconButton } from '../../src/design/button.tsx'
import { CodeBlock } from '../../src/design/code-block.tsx'
import { ConfirmDialog, Dialog } from '../../src/design/dialog.tsx'
import { EmptyState } from '../../src/design/empty-state.tsx'
import { ErrorNote } from '../../src/design/error-note.tsx'
import { Checkbox, Field, Input, SearchInput, Switch, TextField } from '../../src/design/field.tsx'
import { Icon, type IconName, iconNames, Logo } from '../../src/design/icons.tsx'
import { Menu } from '../../src/design/menu.tsx'
import { Card, Facts, Page, Spacer, SplitPane, Toolbar } from '../../src/design/page.tsx'
import { Popover } from '../../src/design/popover.tsx'
import { Select } from '../../src/design/select.tsx'
import { Skeleton } from '../../src/design/skeleton.tsx'
import { Table } from '../../src/design/table.tsx'
import { Tabs } from '../../src/design/tabs.tsx'
import { ToastProvider, useToasts } from '../../src/design/toast.tsx'
import { TooltipProvider } from '../../src/design/tooltip.tsx'

const none = (): void => {}

function Controls() {
  const [choice, setChoice] = useState('newest')
  const [isOn, setOn] = useState(true)
  const options = [
    { value: 'newest', label: 'Newest first' },
    { value: 'oldest', label: 'Oldest first' },
    { value: 'name', label: 'By name' },
  ] as const
  return (
    <Card title="Controls">
      <div className="stack">
        <Toolbar label="Buttons">
          <Button kind="primary" icon="plus">
            Insert record
          </Button>
          <Button icon="filter">Filter</Button>
          <Button kind="quiet">Cancel</Button>
          <Button kind="danger" icon="trash">
            Delete
          </Button>
          <Button isBusy>Saving</Button>
          <Button disabled>Disabled</Button>
          <Spacer />
          <IconButton icon="refresh" label="Reload" />
          <Menu
            trigger={<IconButton icon="more" label="More" />}
            actions={[
              { label: 'Copy as curl', icon: 'copy', run: none },
              { label: 'Duplicate', icon: 'plus', shortcut: 'D', run: none },
              null,
              { label: 'Delete', icon: 'trash', isDangerous: true, run: none },
            ]}
          />
        </Toolbar>
        <Toolbar label="Small buttons">
          <Button size="small" icon="columns">
            Columns
          </Button>
          <Button size="small" kind="primary">
            Save
          </Button>
          <Popover title="Columns" trigger={<Button size="small">Popover</Button>}>
            <div className="gallery-popover">
              <Checkbox label="title" checked onChange={none} />
              <Checkbox label="body" checked={false} onChange={none} />
            </div>
          </Popover>
        </Toolbar>
        <div className="gallery-columns">
          <TextField label="Title" hint="Shown in lists." defaultValue="A record of values" />
          <TextField label="Slug" error="must be unique" defaultValue="a-record" />
          <Field label="Order">
            {(control) => <Select id={control.id} value={choice} options={options} onChange={setChoice} />}
          </Field>
          <Field label="Body">
            {(control) => <textarea className="input" {...control} defaultValue="Several lines" />}
          </Field>
        </div>
        <SearchInput label="Search posts" onChange={none} />
        <Toolbar label="Switches">
          <Checkbox label="Checked" checked onChange={none} />
          <Checkbox label="Some" checked={false} isMixed onChange={none} />
          <Checkbox label="Disabled" checked disabled onChange={none} />
          <Switch label="Live" checked={isOn} onChange={setOn} />
        </Toolbar>
      </div>
    </Card>
  )
}

const rows = [
  { id: '1', title: 'Opening hours in winter', views: 12_904, status: 'live' },
  { id: '2', title: 'طريق الحرير — a title from right to left', views: 310, status: 'draft' },
  {
    id: '3',
    title: 'A very long title that does not fit into its cell and therefore ends with three dots',
    views: 4,
    status: 'failed',
  },
] as const
const toneOf = { live: 'good', draft: 'neutral', failed: 'bad' } as const

function Messages() {
  const toasts = useToasts()
  return (
    <>
      <Card title="Messages">
        <div className="stack">
          <Toolbar label="Badges">
            <Badge>neutral</Badge>
            <Badge tone="accent">accent</Badge>
            <Badge tone="good" hasDot>
              Healthy
            </Badge>
            <Badge tone="warn">Slow</Badge>
            <Badge tone="bad" hasDot>
              Release
            </Badge>
            <Badge tone="violet">json</Badge>
            <Button
              size="small"
              onClick={() =>
                toasts.add({ title: 'Record updated', tone: 'good', action: { label: 'Undo', run: none } })
              }
            >
              Show toast
            </Button>
          </Toolbar>
          <ErrorNote error={new Error('The filter names a field that does not exist.')} onRetry={none} />
          <Skeleton />
        </div>
      </Card>
      <Card title="Posts" isFlush actions={<Button size="small">All posts</Button>}>
        <Table
          label="Posts"
          rows={rows}
          keyOf={({ id }) => id}
          onOpen={none}
          isSelected={({ id }) => id === '2'}
          columns={[
            { id: 'title', title: 'Title', cell: ({ title }) => title },
            { id: 'status', title: 'Status', cell: ({ status }) => <Badge tone={toneOf[status]}>{status}</Badge> },
            {
              id: 'views',
              title: 'Views',
              isNumeric: true,
              isOptional: true,
              cell: ({ views }) => views.toLocaleString('en'),
            },
          ]}
        />
      </Card>
      <Card title="Nothing here">
        <EmptyState icon="table" title="No records yet" action={<Button kind="primary">Insert record</Button>}>
          <p>Insert the first one here, or from your program:</p>
          <CodeBlock code="await plinth.db().posts.insert({ title: 'Hello' })" />
        </EmptyState>
      </Card>
    </>
  )
}

function Dialogs() {
  const [open, setOpen] = useState<'dialog' | 'panel' | 'confirm' | null>(null)
  const close = (): void => setOpen(null)
  return (
    <Card title="Dialogs">
      <Toolbar label="Dialogs">
        <Button onClick={() => setOpen('dialog')}>Open dialog</Button>
        <Button onClick={() => setOpen('panel')}>Open panel</Button>
        <Button onClick={() => setOpen('confirm')}>Open confirmation</Button>
      </Toolbar>
      <Dialog isOpen={open === 'dialog'} onClose={close} title="Insert record" description="Into posts of shared.">
        <TextField label="Title" />
      </Dialog>
      <Dialog
        isOpen={open === 'panel'}
        onClose={close}
        shape="panel"
        title="01J9ZQ4V7C"
        footer={<Button kind="primary">Save</Button>}
      >
        <TextField label="Title" />
      </Dialog>
      <ConfirmDialog
        isOpen={open === 'confirm'}
        onClose={close}
        title="Delete 12 records?"
        action="Delete 12 records"
        phrase="posts"
        onConfirm={async () => {}}
      >
        They cannot be restored except from a backup.
      </ConfirmDialog>
    </Card>
  )
}

function Gallery() {
  return (
    <Page title="Components" description="Everything that pages are made of." actions={<Logo />}>
      <div className="gallery">
        <Controls />
        <Messages />
        <Dialogs />
        <Card title="Facts">
          <Facts
            facts={[
              ['Records', '1,204,118'],
              ['Size', '812 MB'],
              ['Last write', '2 seconds ago'],
            ]}
          />
        </Card>
        <Card title="Icons">
          <div className="gallery-icons">
            {iconNames.map((name: IconName) => (
              <span key={name}>
                <Icon name={name} />
                {name}
              </span>
            ))}
          </div>
        </Card>
        <Card title="Split pane" isFlush>
          <div className="gallery-split">
            <SplitPane side={<Input aria-label="Side" defaultValue="Side" />} isSideShown={false}>
              Content
            </SplitPane>
          </div>
        </Card>
        <Tabs
          label="Views"
          current="rows"
          tabs={[
            { id: 'rows', label: 'Rows', href: '/', count: 1204 },
            { id: 'schema', label: 'Schema', href: '/schema' },
          ]}
        />
      </div>
    </Page>
  )
}

const root = document.getElementById('root')
if (root === null) throw new Error('no root')
createRoot(root).render(
  <StrictMode>
    <ToastProvider>
      <TooltipProvider>
        <main>
          <Gallery />
        </main>
      </TooltipProvider>
    </ToastProvider>
  </StrictMode>,
)
