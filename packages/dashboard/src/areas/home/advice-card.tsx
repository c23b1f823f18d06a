/** What an operator should look at, each with its reason and the code to copy. */
import { useState } from 'react'
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Icon } from '../../design/icons.tsx'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { dismissedDays, shownAdvice, withDismissed } from './dismissed.ts'
import { type Advice, useAdvice, useDismiss, useDismissed } from './requests.ts'

const tones: Readonly<Record<Advice['severity'], Tone>> = { high: 'bad', medium: 'warn', low: 'neutral' }

export function AdviceCard() {
  const permits = usePermits()
  const { data, error, refetch } = useAdvice()
  const { data: dismissed = {} } = useDismissed()
  const dismiss = useDismiss()
  const [showsAll, setShowsAll] = useState(false)
  const mayDismiss = permits('dashboard:views:*:write')
  const items = data?.items ?? []
  const shown = showsAll ? items : shownAdvice(items, dismissed, Date.now())
  const hidden = items.length - shown.length
  return (
    <Card
      title={<>Advice {shown.length > 0 && <span className="home-count">{shown.length}</span>}</>}
      actions={
        hidden > 0 && (
          <Button size="small" onClick={() => setShowsAll(true)}>
            Show {hidden} dismissed
          </Button>
        )
      }
      isFlush={shown.length > 0}
    >
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {dismiss.error !== null && <ErrorNote error={dismiss.error} />}
      {data === undefined && error === null && <Skeleton />}
      {data !== undefined && shown.length === 0 && (
        <p className="home-fine">
          <Icon name="check" /> Nothing to do.
        </p>
      )}
      <ul className="home-advice">
        {shown.map((advice) => (
          <li key={advice.id}>
            <AdviceLine
              advice={advice}
              onDismiss={mayDismiss ? () => dismiss.mutate(withDismissed(dismissed, advice.id, Date.now())) : null}
            />
          </li>
        ))}
      </ul>
    </Card>
  )
}

interface AdviceLineProps {
  readonly advice: Advice
  /** Null where the role may not save views. */
  readonly onDismiss: (() => void) | null
}

const AdviceLine = ({ advice, onDismiss }: AdviceLineProps) => (
  <details>
    <summary>
      <Badge tone={tones[advice.severity]}>{advice.severity}</Badge>
      <span className="home-advice-text">
        <strong>{advice.title}</strong>
        <code>{advice.where}</code>
      </span>
      <Icon name="chevron-down" />
    </summary>
    <div className="home-advice-body">
      <p>{advice.why}</p>
      <p>{advice.fix}</p>
      {advice.code !== null && <CodeBlock code={advice.code} />}
      <div className="button-row">
        {onDismiss && (
          <Button size="small" onClick={onDismiss}>
            Dismiss for {dismissedDays} days
          </Button>
        )}
        {advice.link !== null && (
          <Link className="button button-plain button-small" href={advice.link}>
            Open
          </Link>
        )}
      </div>
    </div>
  </details>
)
