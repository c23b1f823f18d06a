/** A JSON value as a tree that opens and closes. Places that change while it is shown light up. */
import { useState } from 'react'
import { Button } from '../button.tsx'
import { asContainer, type Changes, changesBetween, noChanges, pointerOf } from './changes.ts'

/** Containers below this depth begin closed. */
const openDepth = 2
/** How many values of one container are shown at first, and more with each press. */
const pageSize = 100
/** Longer strings are cut until they are opened. */
const textCharsMax = 300

interface Lit {
  readonly changes: Changes
  /** Counts the changes, so that a place that changes again lights up again. */
  readonly revision: number
}

export function JsonTree({ value, label }: { readonly value: unknown; readonly label: string }) {
  const [seen, setSeen] = useState({ value, changes: noChanges, revision: 0 })
  // Compared while rendering, so that the value and what is lit never disagree.
  if (!Object.is(seen.value, value))
    setSeen({ value, changes: changesBetween(seen.value, value), revision: seen.revision + 1 })
  const isEmpty = Object.keys(asContainer(value) ?? { value }).length === 0
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section className="json-tree" aria-label={label} tabIndex={0}>
      {isEmpty ? (
        <span className="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>
      ) : (
        <Value value={value} pointer="" depth={0} lit={seen} />
      )}
    </section>
  )
}

interface ValueProps {
  readonly value: unknown
  readonly pointer: string
  readonly depth: number
  readonly lit: Lit
}

function Value({ value, pointer, depth, lit }: ValueProps) {
  const container = asContainer(value)
  if (container === null) return <Leaf value={value} />
  return <Entries container={container} pointer={pointer} depth={depth} lit={lit} />
}

type EntriesProps = Omit<ValueProps, 'value'> & { readonly container: Readonly<Record<string, unknown>> }

function Entries({ container, pointer, depth, lit }: EntriesProps) {
  const [shown, setShown] = useState(pageSize)
  const keys = Object.keys(container)
  return (
    <ul className="json-entries">
      {keys.slice(0, shown).map((key) => (
        <Entry
          key={key}
          name={key}
          value={container[key]}
          pointer={pointerOf(pointer, key)}
          depth={depth + 1}
          lit={lit}
        />
      ))}
      {keys.length > shown && (
        <li>
          <Button size="small" onClick={() => setShown(shown + pageSize)}>
            {(keys.length - shown).toLocaleString('en')} more
          </Button>
        </li>
      )}
    </ul>
  )
}

function Entry({ name, ...rest }: ValueProps & { readonly name: string }) {
  const { value, pointer, depth, lit } = rest
  const [isOpen, setOpen] = useState(depth <= openDepth)
  const container = asContainer(value)
  const size = container === null ? 0 : Object.keys(container).length
  const change = lit.changes.get(pointer)
  // An open container leaves the light to what has changed in it.
  const isLit = change === 'self' || (change === 'inside' && !isOpen)
  return (
    <li data-pointer={pointer}>
      <div className="json-row">
        {isLit && <span key={lit.revision} className="json-flash" aria-hidden="true" />}
        {size > 0 ? (
          <button type="button" className="json-name" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <span className="json-arrow" aria-hidden="true">
              {isOpen ? '▾' : '▸'}
            </span>
            {name}
          </button>
        ) : (
          <span className="json-name">{name}</span>
        )}
        {container === null ? <Leaf value={value} /> : <span className="json-empty">{sizeOf(container, size)}</span>}
      </div>
      {size > 0 && isOpen && <Value {...rest} />}
    </li>
  )
}

const sizeOf = (container: object, size: number): string =>
  Array.isArray(container) ? `[${size === 0 ? ' ' : size}]` : `{${size === 0 ? ' ' : size}}`

function Leaf({ value }: { readonly value: unknown }) {
  const [isUncut, setUncut] = useState(false)
  const text = JSON.stringify(value) ?? 'null'
  const kind = value === null ? 'null' : typeof value
  if (text.length <= textCharsMax || isUncut) return <code className={`json-value json-${kind}`}>{text}</code>
  return (
    <>
      <code className={`json-value json-${kind}`}>{text.slice(0, textCharsMax)}…</code>
      <Button size="small" kind="quiet" onClick={() => setUncut(true)}>
        Show all
      </Button>
    </>
  )
}
