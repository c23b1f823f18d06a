/** The shadow run: an edited rule, sample callers, and what would change for them. In development mode only. */
import { lazy, Suspense, useMemo, useRef, useState } from 'react'
import { session } from '../../../app/session-store.ts'
import { useStore } from '../../../app/store.ts'
import { type UrlState, useUrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { describeError } from '../../../design/describe-error.ts'
import type { CodeProblem } from '../../../design/editor/code-editor.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { TextField } from '../../../design/field.tsx'
import { Card } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { callerBody, callerOf } from '../question.ts'
import { type MatrixTable, useMatrix } from '../requests.ts'
import { Segments } from '../segments.tsx'
import { TableField } from '../table-field.tsx'
import {
  type RuleSource,
  type ShadowOperation,
  type ShadowQuestion,
  type ShadowRun,
  shadowOperations,
  useRuleSource,
  useShadowRun,
} from './requests.ts'
import { SampleCallers } from './sample-callers.tsx'
import { ShadowResult } from './shadow-result.tsx'

const RuleEditor = lazy(() =>
  import('../../../design/editor/typescript-editor.tsx').then((module) => ({ default: module.TypeScriptEditor })),
)

export function Shadow() {
  const mode = useStore(session.current)?.mode
  const { data, error, refetch } = useMatrix()
  if (mode === 'release')
    return (
      <Card>
        <EmptyState icon="lock" title="Not in release mode">
          A shadow run executes the text of a rule, which an administrator of a server in use must not be able to do.
          Run the server in development mode, with <code>plinth dev</code> and a copy of its data (
          <code>plinth restore</code>), and try the rule there.
        </EmptyState>
      </Card>
    )
  if (data === undefined)
    return error === null ? <Skeleton lines={8} /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  return <ShadowOf tables={data.tables.filter(({ kind }) => kind === 'table')} />
}

/** Both are denied or allowed by most rules for different reasons. */
const firstCallers = ['anonymous', 'claims:{"id":"sample-user"}']

function callersOf(text: string | null): readonly string[] {
  try {
    const parsed: unknown = JSON.parse(text ?? '')
    if (Array.isArray(parsed) && parsed.length > 0 && parsed.every((one) => typeof one === 'string'))
      return [...new Set(parsed as string[])]
  } catch {
    // Not a list of this page: the samples it begins with.
  }
  return firstCallers
}

/** The caller for the request; null for one of a URL whose claims are no JSON. */
function bodyOf(text: string): ShadowQuestion['callers'][number] | null {
  try {
    return callerBody(callerOf(text))
  } catch {
    return null
  }
}

interface Choice {
  readonly namespace: string
  readonly table: string
  readonly instance: string
  readonly operation: ShadowOperation
  readonly callers: readonly string[]
}

const choiceOf = (url: UrlState): Choice => ({
  namespace: url.get('namespace') ?? '',
  table: url.get('table') ?? '',
  instance: url.get('instance') ?? '',
  operation: shadowOperations.find((one) => one === url.get('operation')) ?? 'read',
  callers: callersOf(url.get('callers')),
})

const operationOptions = shadowOperations.map((value) => ({ value, label: value }))

/** What of a record a rule is compared with, where that is not evident. */
const comparedWith: Partial<Record<ShadowOperation, string>> = {
  create: 'Each record counts as one that is created as it is.',
  update: 'Each record counts as the one before an update.',
  'update.after': 'Each record counts as the result of an update.',
}

function ShadowOf({ tables }: { readonly tables: readonly MatrixTable[] }) {
  const url = useUrlState()
  const choice = choiceOf(url)
  const { namespace, table, instance, operation, callers } = choice
  const source = useRuleSource({ namespace, table, operation })
  const isDynamic = tables.some((one) => one.namespace === namespace && one.hasInstances)
  return (
    <div className="rules-playground">
      <Card title="Which rule">
        <div className="rules-form">
          <div className="rules-group">
            <TableField tables={tables} draft={choice} onChange={(change) => url.set({ ...change })} />
            {isDynamic && (
              <TextField
                label="Instance"
                hint={`${namespace} has one set of tables per instance, such as a tenant.`}
                value={instance}
                maxLength={128}
                onChange={(event) => url.set({ instance: event.target.value }, { replace: true })}
              />
            )}
            <Segments
              label="Rule"
              value={operation}
              options={operationOptions}
              onChange={(next) => url.set({ operation: next })}
            />
            {comparedWith[operation] !== undefined && <p className="field-note">{comparedWith[operation]}</p>}
          </div>
          <SampleCallers
            callers={callers}
            onChange={(next) => url.set({ callers: JSON.stringify(next) }, { replace: true })}
          />
        </div>
      </Card>
      <section className="rules-answer" aria-label="Shadow run">
        {table === '' && (
          <Card>
            <EmptyState icon="rules" title="What would this rule change?">
              Choose a table and a rule, edit its text, and see which of the last 1,000 records each sample caller would
              gain and lose, with the clause that decides. Nothing is stored.
            </EmptyState>
          </Card>
        )}
        {table !== '' && source.data === undefined && source.error === null && <Skeleton lines={8} />}
        {source.error !== null && <ErrorNote error={source.error} onRetry={() => void source.refetch()} />}
        {source.data !== undefined && source.error === null && (
          <Run
            key={`${namespace}.${table}.${operation}`}
            choice={choice}
            isReady={!isDynamic || instance.trim() !== ''}
            isDynamic={isDynamic}
            source={source.data}
          />
        )}
      </section>
    </div>
  )
}

interface RunProps {
  readonly choice: Choice
  readonly isDynamic: boolean
  readonly isReady: boolean
  readonly source: RuleSource
}

/** Where the server says that a text is wrong: `line 2: …` of a text that does not compile, or where it throws. */
function problemsOf(error: unknown, result: ShadowRun | undefined): readonly CodeProblem[] {
  if (error !== null && error !== undefined)
    return describeError(error)
      .details.filter(({ name }) => name === 'rule')
      .flatMap(({ message }) => message.split('\n'))
      .map((message) => {
        const [, line = '1', text = message] = /line (\d+): (.*)$/.exec(message) ?? []
        return { line: Number(line), message: text }
      })
  return (result?.callers ?? []).flatMap(({ error: message, errorAt }) =>
    message === null || errorAt === null ? [] : [{ ...errorAt, message }],
  )
}

function Run({ choice, isDynamic, isReady, source }: RunProps) {
  const [rule, setRule] = useState(source.rule)
  const { mutate, data, error, isPending, variables, reset } = useShadowRun()
  const ran = useRef<readonly string[]>([])
  const problems = useMemo(() => problemsOf(error, data), [error, data])
  const bodies = choice.callers.map(bodyOf).filter((body) => body !== null)
  const isComplete = isReady && rule.trim() !== '' && bodies.length === choice.callers.length && !isPending
  const run = (): void => {
    if (!isComplete) return
    const { namespace, table, operation, callers } = choice
    ran.current = callers
    mutate({
      namespace,
      ...(isDynamic && { instanceId: choice.instance.trim() }),
      table,
      operation,
      rule,
      callers: bodies,
    })
  }
  return (
    <>
      <Card
        title={<code>{source.path}</code>}
        actions={
          rule !== source.rule && (
            <Button
              size="small"
              icon="undo"
              onClick={() => {
                setRule(source.rule)
                reset()
              }}
            >
              Rule in force
            </Button>
          )
        }
      >
        <div className="rules-details">
          <Suspense fallback={<Skeleton lines={4} />}>
            <RuleEditor label="Text of the rule" text={rule} problems={problems} onChange={setRule} onSubmit={run} />
          </Suspense>
          {problems.length > 0 && (
            <ul className="rules-problems" aria-label="Problems of the rule">
              {problems.map(({ line, message }) => (
                <li key={`${line} ${message}`}>
                  <span>Line {line}</span> <code>{message}</code>
                </li>
              ))}
            </ul>
          )}
          <div className="rules-submit">
            <p className="field-note">
              <code>true</code>, <code>false</code>, or a function of <code>auth</code> with <code>and</code>,{' '}
              <code>or</code>, <code>not</code>, <code>exists</code>, <code>field</code> and <code>where</code>.
            </p>
            <Button kind="primary" disabled={!isComplete} isBusy={isPending} onClick={run}>
              Compare
            </Button>
          </div>
        </div>
      </Card>
      {error !== null && problems.length === 0 && <ErrorNote error={error} />}
      {data !== undefined && variables !== undefined && error === null && (
        <ShadowResult question={variables} callers={ran.current} result={data} source={source} />
      )}
    </>
  )
}
