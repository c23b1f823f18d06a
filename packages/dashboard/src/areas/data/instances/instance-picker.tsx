/** The choice of an instance of a namespace: those in use first, a search of all, or any id. */
import { type FormEvent, useEffect, useId, useState } from 'react'
import { useLocation } from 'wouter'
import { usePermits } from '../../../app/permissions.ts'
import { Button } from '../../../design/button.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Checkbox, Input } from '../../../design/field.tsx'
import { formatAge } from '../../../design/format-time.ts'
import { Icon } from '../../../design/icons.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { type DataLocation, pagePath } from '../location.ts'
import { recentInstances, rememberInstance } from './recent-instances.ts'
import { type Instance, useInstances } from './requests.ts'

const idPattern = '[A-Za-z0-9_.\\-]{1,128}'
const isId = (text: string): boolean => new RegExp(`^${idPattern}$`).test(text)

/** A search begins after a pause in typing. */
const searchDelayMs = 200

export function InstancePicker({ namespace, current }: { readonly namespace: string; readonly current: DataLocation }) {
  const [, navigate] = useLocation()
  const permits = usePermits()
  const instanceId = current.namespace === namespace ? current.instanceId : null
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(instanceId === null && current.namespace === namespace)
  const listId = useId()
  const mayList = permits('db:table:*:read')
  const go = (id: string): void => {
    rememberInstance(namespace, id)
    navigate(pagePath({ namespace, instanceId: id, table: current.namespace === namespace ? current.table : null }))
    setText('')
    setOpen(false)
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (isId(text.trim())) go(text.trim())
  }
  return (
    <div className="data-instances">
      {instanceId !== null && (
        <p className="data-instance-current">
          <Icon name="stores" size={14} />
          <strong>{instanceId}</strong>
        </p>
      )}
      <form onSubmit={submit}>
        <Input
          aria-label={`Instance of ${namespace}`}
          placeholder={instanceId === null ? 'Find or open by id' : 'Another instance'}
          pattern={idPattern}
          title="Letters, digits, “_”, “.” and “-”"
          value={text}
          spellCheck={false}
          autoComplete="off"
          onFocus={() => setOpen(true)}
          onClick={() => setOpen(true)}
          onChange={(event) => {
            setText(event.target.value)
            setOpen(true)
          }}
        />
        <Button type="submit" size="small">
          Open
        </Button>
      </form>
      {isOpen && mayList && (
        <InstanceList id={listId} namespace={namespace} text={text.trim()} current={instanceId} onChoose={go} />
      )}
    </div>
  )
}

interface InstanceListProps {
  readonly id: string
  readonly namespace: string
  readonly text: string
  readonly current: string | null
  readonly onChoose: (id: string) => void
}

function InstanceList({ id, namespace, text, current, onChoose }: InstanceListProps) {
  const [isAnywhere, setAnywhere] = useState(false)
  const [words, setWords] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setWords(text), searchDelayMs)
    return () => clearTimeout(timer)
  }, [text])
  const isSearchable = words === '' || isId(words)
  const query = { namespace, text: words, match: isAnywhere ? 'contains' : 'prefix' } as const
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInstances(query, isSearchable)
  const found = data?.pages.flatMap(({ instances }) => instances) ?? []
  const inUse = words === '' ? recentOf(namespace, data?.pages[0]?.recent ?? [], current) : []
  if (!isSearchable) return <p className="data-instance-note">Ids have letters, digits, “_”, “.” and “-”.</p>
  return (
    <div id={id} className="data-instance-list">
      {words !== '' && <Checkbox label="Anywhere in the id" checked={isAnywhere} onChange={setAnywhere} />}
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={3} />}
      {inUse.length > 0 && <Choices title="In use" instances={inUse} current={current} onChoose={onChoose} />}
      {found.length > 0 && (
        <Choices title={words === '' ? 'All' : 'Found'} instances={found} current={current} onChoose={onChoose} />
      )}
      {data !== undefined && found.length === 0 && (
        <p className="data-instance-note">
          {words === '' ? 'No instance has data yet.' : `None has data. “Open” shows ${words} all the same.`}
        </p>
      )}
      {hasNextPage && (
        <Button size="small" kind="quiet" isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          More
        </Button>
      )}
    </div>
  )
}

/** Those that were opened on this page, then those in use by the server. */
function recentOf(namespace: string, recent: readonly Instance[], current: string | null): readonly Instance[] {
  const own = recentInstances(namespace).filter((id) => id !== current)
  const known = new Map(recent.map((one) => [one.id, one]))
  const others = recent.filter(({ id }) => !own.includes(id) && id !== current)
  return [...own.map((id) => known.get(id) ?? { id, writtenAt: null }), ...others]
}

function Choices({
  title,
  instances,
  current,
  onChoose,
}: {
  readonly title: string
  readonly instances: readonly Instance[]
  readonly current: string | null
  readonly onChoose: (id: string) => void
}) {
  return (
    <>
      <h3>{title}</h3>
      <ul aria-label={`Instances: ${title}`}>
        {instances.map(({ id, writtenAt }) => (
          <li key={id}>
            <button
              type="button"
              className="data-choice data-instance"
              aria-current={id === current || undefined}
              onClick={() => onChoose(id)}
            >
              <span className="data-instance-id">{id}</span>
              {writtenAt !== null && (
                <time dateTime={writtenAt} title={`Last write ${writtenAt}`}>
                  {formatAge(writtenAt)}
                </time>
              )}
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}
