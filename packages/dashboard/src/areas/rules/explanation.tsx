/** The answer: the verdict in a sentence, the clauses that lead to it, and the statement with its plan. */
import { classNames } from '../../design/class-names.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { Icon } from '../../design/icons.tsx'
import { Card } from '../../design/page.tsx'
import { ClauseTree } from './clause-tree.tsx'
import { commandOf, type Question } from './question.ts'
import type { Explanation } from './requests.ts'

const callerOf = ({ caller }: Question): string => {
  if (caller.kind === 'anonymous') return 'An anonymous caller'
  return caller.kind === 'user' ? `User ${caller.id}` : 'A user with these claims'
}

const objectOf = ({ namespace, instanceId, table, id, operation }: Question): string => {
  const path = `${instanceId === undefined ? namespace : `${namespace}/${instanceId}`}.${table}`
  if (operation === 'list') return path
  if (operation === 'create') return `a record of ${path}`
  return id === undefined ? `this record of ${path}` : `${path} ${id}`
}

const hasRecord = ({ id, row }: Question): boolean => id !== undefined || row !== undefined

/** What the verdict means, in one sentence. */
function meaningOf({ verdict, reason, listed, auth }: Explanation, question: Question): string {
  const { operation } = question
  if (verdict === 200 && reason !== null) return 'The rules allow it. It is refused for another reason.'
  if (verdict === 200 && listed === true) return 'The list has this record.'
  if (verdict === 200 && listed === false)
    return 'The list is answered, but without this record: the rule or the filter leaves it out.'
  if (verdict === 200 && operation === 'list' && !hasRecord(question))
    return 'The list is answered, with the records for which the clauses below are true.'
  if (verdict === 200) return 'Every rule of this operation is true.'
  if (verdict === 401)
    return auth === null && question.caller.kind !== 'anonymous'
      ? 'This user is disabled, so the server accepts no token of the account.'
      : 'The rule admits no caller without credentials. Another answer is possible after signing in.'
  if (verdict === 403) return 'A rule of this operation is false for this caller.'
  return 'For this caller there is no such record: it is not stored, or the read rule is not true for it.'
}

const verdictIcons = { 200: 'check', 401: 'key', 403: 'close', 404: 'search' } as const

export function ExplanationView({
  question,
  explanation,
}: {
  readonly question: Question
  readonly explanation: Explanation
}) {
  const { allowed, verdict, reason, clauses, truncated, auth } = explanation
  return (
    <>
      <div className={classNames('rules-verdict', allowed ? 'is-allowed' : 'is-denied')} role="status">
        <span className="rules-verdict-icon">
          <Icon name={verdictIcons[verdict]} size={22} />
        </span>
        <div className="rules-verdict-text">
          <h2>
            {allowed ? 'Allowed' : 'Denied'} <span className="rules-status">{verdict}</span>
          </h2>
          <p className="rules-sentence">
            {callerOf(question)} {allowed ? 'may' : 'may not'} <strong>{question.operation}</strong>{' '}
            <code>{objectOf(question)}</code>.
          </p>
          <p>{meaningOf(explanation, question)}</p>
          {reason !== null && (
            <p className="rules-reason">
              The API says <q>{reason}</q>.
            </p>
          )}
        </div>
      </div>
      <Card title="Clauses" actions={<Legend />}>
        {clauses.length === 0 ? (
          <p className="rules-quiet">No rule was evaluated: the answer is given before any of them.</p>
        ) : (
          <ClauseTree clauses={clauses} />
        )}
        {truncated && <p className="rules-quiet">There are more clauses than can be shown.</p>}
      </Card>
      <Statement explanation={explanation} />
      <Card title="Share">
        <div className="rules-details">
          <CodeBlock label="The same question from a shell" code={commandOf(question)} />
          <details>
            <summary>The caller as rules see it</summary>
            <CodeBlock code={JSON.stringify(auth, null, 2)} />
          </details>
        </div>
      </Card>
    </>
  )
}

const Legend = () => <span className="rules-legend">An empty clause counts as false.</span>

/** An index of the configuration as its source. */
const indexText = (fields: readonly string[]): string =>
  `indexes: [{ fields: [${fields.map((field) => `'${field}'`).join(', ')}] }]`

function Statement({ explanation }: { readonly explanation: Explanation }) {
  const { sql, parameters, plan, suggestions } = explanation
  if (sql === null && suggestions.length === 0) return null
  return (
    <Card title="Statement">
      <div className="rules-details">
        {suggestions.map(({ table, fields }) => (
          <div key={JSON.stringify([table, fields])} className="rules-hint">
            <Icon name="bolt" />
            <p>
              An index of <code>{table}</code> would help: <code>{indexText(fields)}</code>
            </p>
          </div>
        ))}
        {sql !== null && (
          <details>
            <summary>SQL and its plan</summary>
            <div className="rules-details">
              <CodeBlock label="SQL" code={sql} />
              {parameters.length > 0 && (
                <CodeBlock
                  label="Parameters"
                  code={parameters.map((value, at) => `${at + 1}  ${JSON.stringify(value)}`).join('\n')}
                />
              )}
              {plan.length > 0 ? (
                <CodeBlock label="Plan" code={plan.join('\n')} />
              ) : (
                <p className="rules-quiet">
                  The plan and the parameters contain values of records, which your role does not read.
                </p>
              )}
            </div>
          </details>
        )}
      </div>
    </Card>
  )
}
