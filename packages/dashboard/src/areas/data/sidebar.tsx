/** The list of namespaces and tables, and the choice of an instance where a namespace has them. */
import { type FormEvent, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Schema } from '../../app/queries.ts'
import { Button } from '../../design/button.tsx'
import { classNames } from '../../design/class-names.ts'
import { Input, SearchInput } from '../../design/field.tsx'
import { Icon } from '../../design/icons.tsx'
import { type DataLocation, pagePath, tablesOf } from './location.ts'
import { recentInstances, rememberInstance } from './recent-instances.ts'

export interface SidebarProps {
  readonly schema: Schema
  readonly current: DataLocation
}

/** Longer lists get a search. */
const searchFrom = 8

export function Sidebar({ schema, current }: SidebarProps) {
  const [words, setWords] = useState('')
  const wanted = words.trim().toLowerCase()
  const count = Object.keys(schema.tables).length
  return (
    <nav className="data-side" aria-label="Tables">
      {count > searchFrom && (
        <div className="data-side-search">
          <SearchInput label="Find a table" value={words} onChange={setWords} />
        </div>
      )}
      <div className="data-side-list">
        {Object.entries(schema.namespaces).map(([namespace, { instance }]) => {
          const instanceId = current.namespace === namespace ? current.instanceId : null
          const tables = tablesOf(schema, namespace).filter(({ name }) => name.toLowerCase().includes(wanted))
          if (tables.length === 0) return null
          return (
            <section key={namespace} className="data-namespace">
              <h2>{namespace}</h2>
              {instance && <InstancePicker namespace={namespace} current={current} />}
              <ul>
                {tables.map(({ name }) => (
                  <li key={name}>
                    {instance && instanceId === null ? (
                      <span className="data-table is-disabled">
                        <Icon name="table" size={14} />
                        {name}
                      </span>
                    ) : (
                      <Link
                        href={pagePath({ namespace, instanceId, table: name })}
                        className={classNames(
                          'data-table',
                          current.namespace === namespace && current.table === name && 'is-current',
                        )}
                        aria-current={current.namespace === namespace && current.table === name ? 'page' : undefined}
                      >
                        <Icon name="table" size={14} />
                        {name}
                      </Link>
                    )}
                  </li>
                ))}
              </ul>
            </section>
          )
        })}
      </div>
    </nav>
  )
}

const instanceIdPattern = '[A-Za-z0-9_.\\-]{1,128}'

/** Instances are opened by their id: there may be any number of them. */
function InstancePicker({ namespace, current }: { readonly namespace: string; readonly current: DataLocation }) {
  const [, navigate] = useLocation()
  const instanceId = current.namespace === namespace ? current.instanceId : null
  const [text, setText] = useState('')
  const go = (id: string): void => {
    rememberInstance(namespace, id)
    navigate(pagePath({ namespace, instanceId: id, table: current.namespace === namespace ? current.table : null }))
    setText('')
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() !== '') go(text.trim())
  }
  const recent = recentInstances(namespace).filter((id) => id !== instanceId)
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
          placeholder="Open an instance by id"
          pattern={instanceIdPattern}
          title="Letters, digits, “_”, “.” and “-”"
          value={text}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" size="small">
          Open
        </Button>
      </form>
      {recent.length > 0 && (
        <ul className="data-recent" aria-label="Recent instances">
          {recent.map((id) => (
            <li key={id}>
              <button type="button" className="data-condition" onClick={() => go(id)}>
                {id}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
