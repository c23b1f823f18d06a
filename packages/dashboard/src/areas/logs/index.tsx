/** Logs: the recent lines of all nodes, filtered by level, text, event, request and node. */

import { Fragment, useState } from 'react'
import { useUrlState } from '../../app/url-state.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { classNames } from '../../design/class-names.ts'
import { CopyButton } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch, Switch } from '../../design/field.tsx'
import { Card, Page, Spacer, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { LoadMore } from '../../design/table.tsx'
import { type Level, type LogFilter, type LogLine, type LogNode, levels, useLogLines } from './requests.ts'

const tones: Readonly<Record<Level, Tone>> = { debug: 'neutral', info: 'neutral', warn: 'warn', error: 'bad' }
const levelOptions = levels.map((level) => ({
  value: level,
  label: level === 'error' ? 'error' : `${level} and above`,
}))
const textCharsMax = 200

const levelOf = (text: string | null): Level => levels.find((level) => level === text) ?? 'info'

export default function Logs() {
  const url = useUrlState()
  const [isFollowing, setFollowing] = useState(true)
  const filter: LogFilter = {
    level: levelOf(url.get('level')),
    text: url.get('q') ?? '',
    event: url.get('event') ?? '',
    requestId: url.get('request') ?? '',
    node: url.get('node') ?? '',
  }
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useLogLines(filter, isFollowing)
  const lines = data?.pages.flatMap((page) => page.items) ?? []
  const nodes = data?.pages[0]?.nodes ?? []
  return (
    <Page title="Logs" description={descriptionOf(nodes.length)}>
      <Toolbar label="Filters">
        <DelayedSearch
          className="logs-search"
          label="Text in a line"
          initial={filter.text}
          maxLength={textCharsMax}
          onSearch={(q) => url.set({ q }, { replace: true })}
        />
        <Select
          className="logs-level"
          label="Level"
          value={filter.level}
          options={levelOptions}
          onChange={(level) => url.set({ level }, { replace: true })}
        />
        <NodeFilter nodes={nodes} value={filter.node} onChange={(node) => url.set({ node })} />
        <ActiveFilter name="Event" value={filter.event} onRemove={() => url.set({ event: null })} />
        <ActiveFilter name="Request" value={filter.requestId} onRemove={() => url.set({ request: null })} />
        <Spacer />
        <Switch label="Follow" checked={isFollowing} onChange={setFollowing} />
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={12} />}
      {data !== undefined && lines.length === 0 && (
        <EmptyState icon="logs" title="No lines">
          No recent line fits these filters. A node keeps about the last 4 MiB, and writes all of them to its standard
          output.
        </EmptyState>
      )}
      {lines.length > 0 && <Lines lines={lines} showsNode={nodes.length > 1} onFilter={(values) => url.set(values)} />}
      <LoadMore pages={{ hasNextPage, fetchNextPage, isFetchingNextPage }} label="Older lines" />
    </Page>
  )
}

const descriptionOf = (nodes: number): string =>
  `The recent lines of ${nodes > 1 ? `${nodes} nodes` : 'the server'}, newest first. Secrets are not in them.`

/** Several nodes may run on one host. */
const nameOf = ({ id, host }: LogNode): string => `${host} ${id.slice(0, 8)}`

function NodeFilter(props: {
  readonly nodes: readonly LogNode[]
  readonly value: string
  readonly onChange: (id: string | null) => void
}) {
  const { nodes, value, onChange } = props
  if (nodes.length < 2 && value === '') return null
  // The node of a link may have ended since.
  const known = value === '' || nodes.some(({ id }) => id === value) ? nodes : [...nodes, { id: value, host: 'ended' }]
  return (
    <Select
      className="logs-node"
      label="Node"
      value={value === '' ? 'all' : value}
      options={[{ value: 'all', label: 'All nodes' }, ...known.map((one) => ({ value: one.id, label: nameOf(one) }))]}
      onChange={(id) => onChange(id === 'all' ? null : id)}
    />
  )
}

function ActiveFilter(props: { readonly name: string; readonly value: string; readonly onRemove: () => void }) {
  if (props.value === '') return null
  return (
    <Button size="small" icon="close" onClick={props.onRemove} aria-label={`Remove the filter ${props.name}`}>
      {props.name}: {props.value}
    </Button>
  )
}

type OnFilter = (values: Readonly<Record<string, string>>) => void

/** Lines have no id; equal ones at the same time differ by their order. */
function withKeys(lines: readonly LogLine[]): (readonly [key: string, line: LogLine])[] {
  const seen = new Map<string, number>()
  return lines.map((line) => {
    const base = `${line.at} ${line.node.id} ${line.event} ${line.requestId ?? ''}`
    const count = (seen.get(base) ?? 0) + 1
    seen.set(base, count)
    return [`${base} ${count}`, line]
  })
}

interface LinesProps {
  readonly lines: readonly LogLine[]
  readonly showsNode: boolean
  readonly onFilter: OnFilter
}

function Lines({ lines, showsNode, onFilter }: LinesProps) {
  const [openKey, setOpenKey] = useState<string | null>(null)
  return (
    <Card isFlush>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <section className="table-scroll" aria-label="Log lines" tabIndex={0}>
        <table className="table logs-table">
          <caption className="visually-hidden">Log lines</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Level</th>
              <th scope="col">Event</th>
              {showsNode && (
                <th scope="col" className="is-optional">
                  Node
                </th>
              )}
              <th scope="col" className="is-optional">
                Fields
              </th>
            </tr>
          </thead>
          <tbody>
            {withKeys(lines).map(([key, line]) => {
              const isOpen = key === openKey
              return (
                <Fragment key={key}>
                  <tr
                    className={classNames('is-clickable', isOpen && 'is-selected', `logs-${line.level}`)}
                    onClick={() => setOpenKey(isOpen ? null : key)}
                  >
                    <td>
                      <button
                        type="button"
                        className="table-open logs-time"
                        aria-expanded={isOpen}
                        onClick={(event) => {
                          event.stopPropagation()
                          setOpenKey(isOpen ? null : key)
                        }}
                      >
                        {timeOf(line.at)}
                      </button>
                    </td>
                    <td>
                      <Badge tone={tones[line.level]}>{line.level}</Badge>
                    </td>
                    <td>
                      <code>{line.event}</code>
                      <span className="logs-brief">{summaryOf(line)}</span>
                    </td>
                    {showsNode && <td className="is-optional logs-node-name">{nameOf(line.node)}</td>}
                    <td className="is-optional logs-fields">{summaryOf(line)}</td>
                  </tr>
                  {isOpen && (
                    <tr className="logs-detail">
                      <td colSpan={showsNode ? 5 : 4}>
                        <Detail line={line} showsNode={showsNode} onFilter={onFilter} />
                      </td>
                    </tr>
                  )}
                </Fragment>
              )
            })}
          </tbody>
        </table>
      </section>
    </Card>
  )
}

function Detail({ line, showsNode, onFilter }: Omit<LinesProps, 'lines'> & { readonly line: LogLine }) {
  const { at, level, event, requestId, fields, node } = line
  const text = JSON.stringify({ at, level, event, ...fields, node: nameOf(node) }, null, 2)
  return (
    <div className="logs-detail-body">
      <div className="button-row">
        <Button size="small" icon="filter" onClick={() => onFilter({ event })}>
          Only this event
        </Button>
        {requestId !== null && (
          <Button size="small" icon="filter" onClick={() => onFilter({ request: requestId, level: 'debug' })}>
            Only this request
          </Button>
        )}
        {showsNode && (
          <Button size="small" icon="filter" onClick={() => onFilter({ node: node.id })}>
            Only this node
          </Button>
        )}
        <CopyButton text={text} label="Copy the line" />
      </div>
      <pre>{text}</pre>
    </div>
  )
}

/** The time of day with milliseconds; lines of other days have their date. */
function timeOf(iso: string): string {
  const date = new Date(iso)
  const time = `${date.toLocaleTimeString('en-GB')}.${String(date.getMilliseconds()).padStart(3, '0')}`
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString('en-CA')} ${time}`
}

const summaryCharsMax = 300

/** Names and values of the fields in one line. */
const summaryOf = ({ fields }: LogLine): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('  ')
    .slice(0, summaryCharsMax)
