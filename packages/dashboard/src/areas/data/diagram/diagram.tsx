/** The tables of all namespaces with their relations, drawn. A chunk of its own. */
import { type FormEvent, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Schema } from '../../../app/queries.ts'
import { tablePath } from '../../../app/table-path.ts'
import { Badge } from '../../../design/badge.tsx'
import { Button, IconButton } from '../../../design/button.tsx'
import { classNames } from '../../../design/class-names.ts'
import { SearchInput } from '../../../design/field.tsx'
import { Spacer, Toolbar } from '../../../design/page.tsx'
import { type DiagramGroup, type DiagramTable, inset, layoutSchema } from './layout.ts'
import { type Area, usePanZoom } from './use-pan-zoom.ts'

/** Below it only names are drawn. */
const scaleOfFields = 0.5

const areaOf = (group: DiagramGroup, { x, y, width, height }: DiagramTable): Area => ({
  x: group.x + inset.x + x,
  y: group.y + inset.y + y,
  width,
  height,
})

const lineOf = (points: readonly { readonly x: number; readonly y: number }[]): string => {
  const [start, ...rest] = points.map(({ x, y }) => `${x + inset.x} ${y + inset.y}`)
  return `M${start} L${rest.join(' L')}`
}

export function SchemaDiagram({ schema, onBack }: { readonly schema: Schema; readonly onBack: () => void }) {
  const diagram = useMemo(() => layoutSchema(schema), [schema])
  const frame = useRef<HTMLDivElement>(null)
  const moves = usePanZoom(frame, diagram)
  const [words, setWords] = useState('')
  const [active, setActive] = useState<string | null>(null)
  const wanted = words.trim().toLowerCase()
  const isFound = ({ table }: DiagramTable): boolean =>
    wanted !== '' &&
    (table.name.toLowerCase().includes(wanted) ||
      Object.keys(table.fields).some((name) => name.toLowerCase().includes(wanted)))
  const found = diagram.groups.flatMap((group) => group.tables.filter(isFound).map((table) => ({ group, table })))
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    const [first] = found
    if (!first) return
    moves.center(areaOf(first.group, first.table))
    const { namespace, name } = first.table.table
    frame.current?.querySelector<HTMLElement>(`[data-table="${CSS.escape(`${namespace}.${name}`)}"]`)?.focus({
      preventScroll: true,
    })
  }
  const { view } = moves
  return (
    <div className="data-diagram">
      <div className="data-toolbar">
        <Toolbar label="Diagram">
          <Button className="data-back" kind="quiet" size="small" icon="chevron-left" onClick={onBack}>
            Tables
          </Button>
          <h1 className="data-diagram-title">Diagram</h1>
          <form onSubmit={submit}>
            <SearchInput className="data-search" label="Find a table or a field" value={words} onChange={setWords} />
          </form>
          <output className="data-total">{wanted === '' ? '' : `${found.length} found`}</output>
          <Spacer />
          <IconButton size="small" icon="minus" label="Zoom out" shortcut="-" onClick={() => moves.zoom(0.8)} />
          <output className="data-total">{Math.round(view.scale * 100)} %</output>
          <IconButton size="small" icon="plus" label="Zoom in" shortcut="+" onClick={() => moves.zoom(1.25)} />
          <Button size="small" onClick={moves.fit}>
            Fit
          </Button>
        </Toolbar>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a drawing that is moved by keys. */}
      <div
        className={classNames('data-diagram-frame', view.scale < scaleOfFields && 'is-far')}
        role="group"
        aria-label="Tables and relations; arrow keys move the drawing, + and - scale it"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: see above.
        tabIndex={0}
        ref={frame}
        onPointerDown={moves.onPointerDown}
        onKeyDown={moves.onKeyDown}
        onScroll={(event) => event.currentTarget.scrollTo(0, 0)}
      >
        <div
          className="data-diagram-drawing"
          style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})` }}
        >
          {diagram.groups.map((group) => (
            <Group
              key={group.namespace}
              group={group}
              schema={schema}
              active={active}
              isSearching={wanted !== ''}
              isFound={isFound}
              onActive={(table) => {
                setActive(table && `${group.namespace}.${table.table.name}`)
                if (table) moves.reveal(areaOf(group, table))
              }}
            />
          ))}
        </div>
      </div>
    </div>
  )
}

interface GroupProps {
  readonly group: DiagramGroup
  readonly schema: Schema
  readonly active: string | null
  readonly isSearching: boolean
  readonly isFound: (table: DiagramTable) => boolean
  readonly onActive: (table: DiagramTable | null) => void
}

function Group({ group, schema, active, isSearching, isFound, onActive }: GroupProps) {
  const { namespace, hasInstances, x, y, width, height } = group
  return (
    <section className="data-diagram-group" style={{ left: x, top: y, width, height }}>
      <h2>
        {namespace}
        {hasInstances && <Badge>one for each instance</Badge>}
      </h2>
      <svg className="data-diagram-lines" width={width} height={height} aria-hidden="true">
        <defs>
          <marker
            id={`arrow-${namespace}`}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            orient="auto"
          >
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {group.edges.map(({ key, from, to, points }) => (
          <path
            key={key}
            className={classNames(
              'data-diagram-line',
              (active === `${namespace}.${from}` || active === `${namespace}.${to}`) && 'is-active',
            )}
            d={lineOf(points)}
            markerEnd={`url(#arrow-${namespace})`}
          />
        ))}
      </svg>
      {group.tables.map((one) => (
        <Link
          key={one.table.name}
          href={tablePath(one.table, schema.namespaces)}
          data-table={`${namespace}.${one.table.name}`}
          className={classNames('data-diagram-table', isSearching && (isFound(one) ? 'is-found' : 'is-dimmed'))}
          style={{ left: one.x + inset.x, top: one.y + inset.y, width: one.width, height: one.height }}
          onFocus={() => onActive(one)}
          onBlur={() => onActive(null)}
          draggable={false}
        >
          <strong>{one.table.name}</strong>
          <span className="data-diagram-fields">
            {one.fields.map(({ name, type, references }) => (
              <span key={name} className={classNames('data-diagram-field', references !== undefined && 'is-reference')}>
                <span>{name}</span>
                <span>{references === undefined ? type : `→ ${references}`}</span>
              </span>
            ))}
            {one.more > 0 && <span className="data-diagram-field">{one.more} more</span>}
          </span>
        </Link>
      ))}
    </section>
  )
}
