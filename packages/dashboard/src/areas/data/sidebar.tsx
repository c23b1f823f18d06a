/** The list of namespaces and tables, and the choice of an instance where a namespace has them. */
import { useState } from 'react'
import { Link } from 'wouter'
import type { Schema } from '../../app/queries.ts'
import { classNames } from '../../design/class-names.ts'
import { SearchInput } from '../../design/field.tsx'
import { Icon } from '../../design/icons.tsx'
import { InstancePicker } from './instances/instance-picker.tsx'
import { type DataLocation, pagePath, tablesOf } from './location.ts'

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
      <Link className="data-side-diagram" href="/data?diagram=1">
        <Icon name="link" size={14} />
        Diagram
      </Link>
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
