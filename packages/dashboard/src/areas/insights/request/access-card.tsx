/** Why the rules let a request through or not: the rules for its caller, and the clauses that decide. */
import { Link } from 'wouter'
import { classNames } from '../../../design/class-names.ts'
import { Icon } from '../../../design/icons.tsx'
import { Card } from '../../../design/page.tsx'
import { playgroundPath } from './links.ts'
import type { AccessExplanation, ExplainedRequest } from './requests.ts'

const ruleTitles: Readonly<Record<string, string>> = {
  read: 'read',
  insert: 'create',
  'update.before': 'update, before',
  'update.after': 'update, after',
  delete: 'delete',
}

const indexText = (fields: readonly string[]): string =>
  `indexes: [{ fields: [${fields.map((field) => `'${field}'`).join(', ')}] }]`

export function AccessCard({ request }: { readonly request: ExplainedRequest }) {
  const { trace, access, caller } = request
  const rules = trace?.rules ?? []
  if (rules.length === 0 && access === null) return null
  return (
    <Card
      title="Access"
      actions={
        access !== null && (
          <Link className="button button-plain button-small" href={playgroundPath(access.question)}>
            Why?
          </Link>
        )
      }
    >
      <div className="request-access">
        {caller.startsWith('service:') && <p>A service key passes all rules.</p>}
        {!caller.startsWith('service:') && rules.length > 0 && (
          <dl className="request-rules">
            {rules.map(({ table, rule, text }) => (
              <div key={`${table} ${rule}`}>
                <dt>
                  {table} {ruleTitles[rule] ?? rule}
                </dt>
                <dd>
                  <code>{text}</code>
                </dd>
              </div>
            ))}
          </dl>
        )}
        {access?.explanation && <Decision explanation={access.explanation} status={request.status} />}
      </div>
    </Card>
  )
}

interface DecisionProps {
  readonly explanation: AccessExplanation
  readonly status: number
}

function Decision({ explanation, status }: DecisionProps) {
  const { verdict, reason, clauses, suggestions } = explanation
  const isSame = verdict === status || (verdict === 200 && status < 400)
  return (
    <>
      <h3 className="request-decision">
        <Icon name={explanation.allowed ? 'check' : 'close'} />
        {explanation.allowed ? 'The rules allow it' : `The rules deny it: ${verdict}`}
        {reason !== null && <q>{reason}</q>}
      </h3>
      <ul className="request-clauses">
        {clauses.map(({ path, text, result, values }) => (
          <li key={path} className={classNames(result === true ? 'is-true' : 'is-false')}>
            <Icon
              name={result === true ? 'check' : result === false ? 'close' : 'minus'}
              size={12}
              label={result === true ? 'true' : result === false ? 'false' : 'empty'}
            />
            <code>{text}</code>
            {Object.entries(values).map(([field, value]) => (
              <span key={field} className="request-value">
                {field} <code>{value === null ? 'empty' : JSON.stringify(value)}</code>
              </span>
            ))}
          </li>
        ))}
      </ul>
      {suggestions.map(({ table, fields }) => (
        <p key={JSON.stringify([table, fields])} className="request-hint">
          <Icon name="bolt" /> An index of <code>{table}</code> would help: <code>{indexText(fields)}</code>
        </p>
      ))}
      <p className="insights-note">
        {isSame
          ? 'By the current rules and records.'
          : `The response was ${status}: the rules or the record have changed since, or it was refused for another reason.`}
      </p>
    </>
  )
}
