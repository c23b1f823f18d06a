/** The callers that both rules are compared for: a list, and the form that adds one. */
import { useState } from 'react'
import { Button, IconButton } from '../../../design/button.tsx'
import { Icon } from '../../../design/icons.tsx'
import { parseObject } from '../../../text/json.ts'
import { type CallerDraft, CallerFields } from '../caller-fields.tsx'
import { callerOf, callerText } from '../question.ts'
import { useUserName } from '../requests.ts'

/** As many as the server takes. */
export const callersMax = 20

const icons = { anonymous: 'eye', user: 'user', claims: 'json' } as const

/** The text of a caller as people read it. `name` is that of a stored user, once it is known. */
export function callerTitle(text: string, name: string | undefined): string {
  const { caller, userId, claims } = callerOf(text)
  if (caller === 'anonymous') return 'Anonymous'
  return caller === 'user' ? (name ?? userId) : claims
}

export function CallerName({ text }: { readonly text: string }) {
  const { caller, userId } = callerOf(text)
  const { data } = useUserName(userId, caller === 'user')
  return (
    <span className="rules-shadow-caller">
      <Icon name={icons[caller]} />
      <span>{callerTitle(text, data?.displayName || data?.email || undefined)}</span>
    </span>
  )
}

interface SampleCallersProps {
  readonly callers: readonly string[]
  readonly onChange: (callers: readonly string[]) => void
}

const empty: CallerDraft = { caller: 'user', userId: '', claims: '' }

export function SampleCallers({ callers, onChange }: SampleCallersProps) {
  const [draft, setDraft] = useState<CallerDraft | null>(null)
  return (
    <div className="rules-group">
      <h3 className="rules-shadow-label">Sample callers</h3>
      <ul className="rules-shadow-callers">
        {callers.map((text) => (
          <li key={text}>
            <CallerName text={text} />
            <IconButton
              icon="close"
              size="small"
              label={`Remove ${callerTitle(text, undefined)}`}
              disabled={callers.length === 1}
              onClick={() => onChange(callers.filter((one) => one !== text))}
            />
          </li>
        ))}
      </ul>
      {draft === null ? (
        callers.length < callersMax && (
          <Button size="small" icon="plus" onClick={() => setDraft(empty)}>
            Add caller
          </Button>
        )
      ) : (
        <NewCaller
          draft={draft}
          onDraft={setDraft}
          onAdd={(text) => {
            if (!callers.includes(text)) onChange([...callers, text])
            setDraft(null)
          }}
        />
      )}
    </div>
  )
}

interface NewCallerProps {
  readonly draft: CallerDraft
  readonly onDraft: (draft: CallerDraft | null) => void
  readonly onAdd: (text: string) => void
}

function NewCaller({ draft, onDraft, onAdd }: NewCallerProps) {
  const { caller, userId, claims } = draft
  const parsed = caller === 'claims' && claims.trim() !== '' ? parseObject(claims) : null
  const problem = parsed !== null && 'problem' in parsed ? parsed.problem : null
  const isReady = caller === 'anonymous' || (caller === 'user' ? userId !== '' : parsed !== null && problem === null)
  return (
    <div className="rules-shadow-new">
      <CallerFields draft={draft} problem={problem} onChange={(change) => onDraft({ ...draft, ...change })} />
      <div className="button-row">
        <Button size="small" onClick={() => onDraft(null)}>
          Cancel
        </Button>
        <Button size="small" kind="primary" disabled={!isReady} onClick={() => onAdd(callerText(draft))}>
          Add
        </Button>
      </div>
    </div>
  )
}
