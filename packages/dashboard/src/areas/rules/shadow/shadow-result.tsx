/** What an edited rule changes: a row of figures for each caller, and the records with the clauses that decide. */
import { Link } from 'wouter'
import { classNames } from '../../../design/class-names.ts'
import { Icon } from '../../../design/icons.tsx'
import { Card } from '../../../design/page.tsx'
import { Patch } from '../../../design/patch/patch.tsx'
import type { Clause } from '../requests.ts'
import type { Changed, ChangedRow, RuleSource, ShadowOfCaller, ShadowQuestion, ShadowRun } from './requests.ts'
import { rulePatch } from './rule-patch.ts'
import { CallerName } from './sample-callers.tsx'

interface ShadowResultProps {
  readonly question: ShadowQuestion
  /** As texts, in the order of the question. */
  readonly callers: readonly string[]
  readonly result: ShadowRun
  readonly source: RuleSource
}

const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`

export function ShadowResult({ question, callers, result, source }: ShadowResultProps) {
  const changes = result.callers.filter(({ gained, lost }) => gained.count + lost.count > 0).length
  return (
    <>
      <div className={classNames('rules-shadow-sum', changes > 0 && 'is-changed')} role="status">
        <Icon name={changes > 0 ? 'bolt' : 'check'} size={20} />
        <p>
          <strong>
            {changes === 0
              ? 'No caller gains or loses a record.'
              : `${counted(changes, 'caller')} would see a difference.`}
          </strong>{' '}
          Compared over the last {counted(result.rows, 'record')} of{' '}
          <code>{`${question.namespace}.${question.table}`}</code>. Nothing was stored.
        </p>
      </div>
      {result.callers.map((one, at) => (
        <OfCaller key={callers[at]} text={callers[at] ?? ''} one={one} rows={result.rows} question={question} />
      ))}
      {question.rule !== source.rule && <RulePatch source={source} edited={question.rule} />}
    </>
  )
}

interface OfCallerProps {
  readonly text: string
  readonly one: ShadowOfCaller
  /** How many records were compared. */
  readonly rows: number
  readonly question: ShadowQuestion
}

function OfCaller({ text, one, rows, question }: OfCallerProps) {
  const { gained, lost, before, after, error } = one
  return (
    <Card title={<CallerName text={text} />} actions={<Figures gained={gained} lost={lost} rows={rows} />}>
      <div className="rules-details">
        {error !== null && (
          <p className="rules-failure">
            The edited rule fails for this caller, and so denies: <code>{error}</code>
          </p>
        )}
        <dl className="rules-shadow-rules">
          <dt>Now</dt>
          <dd>
            <code>{before}</code>
          </dd>
          <dt>Edited</dt>
          <dd>
            <code>{after}</code>
          </dd>
        </dl>
        <Rows kind="gained" changed={gained} question={question} />
        <Rows kind="lost" changed={lost} question={question} />
      </div>
    </Card>
  )
}

/** The two numbers, and their shares of the records as a bar. */
function Figures({ gained, lost, rows }: { readonly gained: Changed; readonly lost: Changed; readonly rows: number }) {
  const share = (count: number): number => (rows === 0 ? 0 : (count / rows) * 100)
  return (
    <span className="rules-shadow-figures">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect className="rules-shadow-bar" width={100} height={6} />
        <rect className="rules-shadow-gained" width={share(gained.count)} height={6} />
        <rect className="rules-shadow-lost" x={100 - share(lost.count)} width={share(lost.count)} height={6} />
      </svg>
      <span className={classNames('rules-shadow-count', gained.count > 0 && 'is-gained')}>
        +{gained.count.toLocaleString('en')} <span className="visually-hidden">gained</span>
      </span>
      <span className={classNames('rules-shadow-count', lost.count > 0 && 'is-lost')}>
        −{lost.count.toLocaleString('en')} <span className="visually-hidden">lost</span>
      </span>
    </span>
  )
}

const titles = { gained: 'Gains', lost: 'Loses' } as const

interface RowsProps {
  readonly kind: 'gained' | 'lost'
  readonly changed: Changed
  readonly question: ShadowQuestion
}

function Rows({ kind, changed: { count, ids, rows }, question }: RowsProps) {
  if (count === 0) return null
  const explained = new Map(rows.map((row) => [row.id, row]))
  return (
    <section className={`rules-shadow-rows is-${kind}`}>
      <h3>
        {titles[kind]} {counted(count, 'record')}
      </h3>
      <ul>
        {ids.map((id) => (
          <li key={id}>
            <span className="rules-shadow-mark" aria-hidden="true">
              {kind === 'gained' ? '+' : '−'}
            </span>
            <Link href={recordPath(question, id)}>
              <code>{id}</code>
            </Link>
            {explained.has(id) && <Reasons row={explained.get(id) as ChangedRow} />}
          </li>
        ))}
      </ul>
      {count > ids.length && <p className="rules-quiet">and {counted(count - ids.length, 'more record')}.</p>}
    </section>
  )
}

function recordPath({ namespace, instanceId, table }: ShadowQuestion, id: string): string {
  const parts = [namespace, ...(instanceId === undefined ? [] : [instanceId]), table].map(encodeURIComponent)
  return `/data/${parts.join('/')}?row=${encodeURIComponent(id)}`
}

const Reasons = ({ row: { before, after } }: { readonly row: ChangedRow }) => (
  <span className="rules-shadow-reasons">
    <Reason label="now" clauses={before} />
    <Icon name="arrow-right" size={12} label="edited" />
    <Reason label="edited" clauses={after} />
  </span>
)

function Reason({ label, clauses }: { readonly label: string; readonly clauses: readonly Clause[] }) {
  return (
    <span className="rules-shadow-reason">
      {clauses.map(({ path, text, result, values }) => (
        <span key={path} className={classNames('rules-shadow-clause', result === true ? 'is-true' : 'is-false')}>
          <span className="visually-hidden">{label}:</span>
          <Icon name={result === true ? 'check' : result === false ? 'close' : 'minus'} size={12} />
          <code>{text}</code>
          {result !== true && Object.keys(values).length > 0 && (
            <span className="rules-shadow-value">
              {Object.entries(values)
                .map(([field, value]) => `${field} is ${value === null ? 'empty' : JSON.stringify(value)}`)
                .join(', ')}
            </span>
          )}
        </span>
      ))}
    </span>
  )
}

function RulePatch({ source: { path, rule }, edited }: { readonly source: RuleSource; readonly edited: string }) {
  return (
    <Card title="Patch">
      <div className="rules-details">
        <p className="rules-quiet">
          This page changes nothing. Copy the rule to <code>plinth.config.ts</code>, which the server loads again by
          itself. The text of the rule in force is without types and comments.
        </p>
        <Patch path={path} parts={[rulePatch(path, rule, edited)]} />
      </div>
    </Card>
  )
}
