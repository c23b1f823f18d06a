/** The playground: a question, which is in the URL, and its answer beside it. */
import { useRef, useState } from 'react'
import { useUrlState } from '../../app/url-state.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { ExplanationView } from './explanation.tsx'
import { type Draft, draftOf, missingOf, paramsOf, questionOf } from './question.ts'
import { QuestionForm } from './question-form.tsx'
import { type MatrixTable, useExplanation, useMatrix } from './requests.ts'

/** Screens on which the answer is below the form. */
const isNarrow = (): boolean => matchMedia('(max-width: 900px)').matches

export function Playground() {
  // The matrix names every table, also where the endpoint of the schema is off.
  const { data, error, refetch } = useMatrix()
  if (data === undefined)
    return error === null ? <Skeleton lines={8} /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  return <PlaygroundOf tables={data.tables.filter(({ kind }) => kind === 'table')} />
}

function PlaygroundOf({ tables }: { readonly tables: readonly MatrixTable[] }) {
  const url = useUrlState()
  const sent = draftOf(url.get)
  const address = JSON.stringify(paramsOf(sent))
  /** What was typed since the question at `address`; another address replaces it. */
  const [edited, setEdited] = useState<{ readonly address: string; readonly draft: Draft } | null>(null)
  const draft = edited?.address === address ? edited.draft : sent
  const isDynamic = tables.some(({ namespace, hasInstances }) => namespace === sent.namespace && hasInstances)
  const question = questionOf(sent, isDynamic)
  const { data, error, isFetching, refetch } = useExplanation(question)

  const answer = useRef<HTMLElement>(null)
  const explain = (): void => {
    const params = paramsOf(draft)
    if (JSON.stringify(params) === address) void refetch()
    else url.set(params)
    // The back button leads to the question as it was sent.
    setEdited(null)
    if (isNarrow()) answer.current?.scrollIntoView({ block: 'start' })
  }
  return (
    <div className="rules-playground">
      <QuestionForm
        tables={tables}
        draft={draft}
        isBusy={isFetching}
        onChange={(change) => setEdited({ address, draft: { ...draft, ...change } })}
        onExplain={explain}
      />
      <section ref={answer} className="rules-answer" aria-label="Answer" aria-busy={isFetching}>
        {question === null && (
          <Card>
            <EmptyState icon="rules" title="Why may this caller see this record?">
              Choose a caller and a record. You see the response of the API, which clause of the rule decides, and the
              values that it reads. {sent.table !== '' && missingOf(sent, isDynamic)}
            </EmptyState>
          </Card>
        )}
        {question !== null && error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {question !== null && data === undefined && error === null && <Skeleton lines={8} />}
        {question !== null && data !== undefined && error === null && (
          <ExplanationView question={question} explanation={data} />
        )}
      </section>
    </div>
  )
}
