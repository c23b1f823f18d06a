/** Composes a message with a preview, and sends it after a confirmation that names the number of devices. */
import { type FormEvent, useState } from 'react'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Field, TextField } from '../../design/field.tsx'
import { Icon } from '../../design/icons.tsx'
import { Card } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { useToasts } from '../../design/toast.tsx'
import { parseObject } from '../../text/json.ts'
import { type Audience, type Message, type Recipients, type Sent, useAudience, useSend } from './requests.ts'

const kinds = [
  { value: 'user', label: 'A user' },
  { value: 'topic', label: 'A topic' },
  { value: 'all', label: 'All devices' },
] as const
type Kind = (typeof kinds)[number]['value']

const topicPattern = '[A-Za-z0-9_.~%\\-]+'

const recipientsOf = (kind: Kind, name: string): Recipients | null => {
  if (kind === 'all') return { kind }
  if (name === '') return null
  if (kind === 'user') return { kind, userId: name }
  return new RegExp(`^${topicPattern}$`).test(name) ? { kind, topic: name } : null
}

/** `3 devices (2 android, 1 ios)` */
function describeAudience({ devices, isMore, platforms }: Audience): string {
  const count = `${isMore ? 'more than ' : ''}${devices.toLocaleString('en')} ${devices === 1 ? 'device' : 'devices'}`
  const parts = Object.entries(platforms).map(([platform, n]) => `${n.toLocaleString('en')} ${platform}`)
  return parts.length === 0 || isMore ? count : `${count} (${parts.join(', ')})`
}

/** What is typed, as texts. */
interface Draft {
  readonly kind: Kind
  readonly name: string
  readonly title: string
  readonly body: string
  readonly url: string
  readonly data: string
}

const empty: Draft = { kind: 'user', name: '', title: '', body: '', url: '', data: '' }

/** The message of a draft, or what is wrong with its data. */
function messageOf({ title, body, url, data: text }: Draft): { message: Message } | { problem: string } {
  const parsed = text.trim() === '' ? { value: {} } : parseObject(text)
  if ('problem' in parsed) return parsed
  const data = { ...parsed.value, ...(url.trim() === '' ? {} : { url: url.trim() }) }
  return { message: { title, body, ...(Object.keys(data).length > 0 ? { data } : {}) } }
}

export function Composer() {
  const toasts = useToasts()
  const send = useSend()
  const [draft, setDraft] = useState(empty)
  const [isConfirming, setConfirming] = useState(false)
  const [result, setResult] = useState<Sent | null>(null)
  const to = recipientsOf(draft.kind, draft.name.trim())
  const { data: audience, error } = useAudience(to)
  const composed = messageOf(draft)
  const isReady = to !== null && 'message' in composed && Boolean(audience?.devices)

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (isReady) setConfirming(true)
  }
  const confirm = async (): Promise<void> => {
    if (to === null || !('message' in composed)) return
    setResult(null)
    const sent = await send.mutateAsync({ to, message: composed.message })
    setResult(sent)
    toasts.add({ title: sent.sent === undefined ? 'The message is being sent' : 'Message sent', tone: 'good' })
  }
  const phrase = draft.kind === 'user' ? {} : { phrase: draft.kind === 'all' ? 'all devices' : draft.name.trim() }
  return (
    <div className="push-composer">
      <Card title="New message">
        <form className="stack" onSubmit={submit}>
          <RecipientFields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} />
          <MessageFields
            draft={draft}
            problem={'problem' in composed ? composed.problem : null}
            onChange={(part) => setDraft({ ...draft, ...part })}
          />
          {error !== null && <ErrorNote error={error} />}
          <AudienceNote to={to} audience={audience} />
          {result?.sent !== undefined && (
            <p role="status">
              Sent to {result.sent} of {result.sent + (result.failed ?? 0)} devices. The log names each result.
            </p>
          )}
          <div className="button-row">
            <Button type="submit" kind="primary" icon="push" disabled={!isReady}>
              Send…
            </Button>
          </div>
        </form>
      </Card>
      <Preview draft={draft} />
      <ConfirmDialog
        isOpen={isConfirming && audience !== undefined}
        onClose={() => setConfirming(false)}
        title="Send this message?"
        action="Send message"
        {...phrase}
        onConfirm={confirm}
      >
        <span>
          <strong dir="auto">{draft.title}</strong> goes to {audience && describeAudience(audience)}. It cannot be taken
          back.
        </span>
      </ConfirmDialog>
    </div>
  )
}

interface FieldsProps {
  readonly draft: Draft
  readonly onChange: (part: Partial<Draft>) => void
}

function RecipientFields({ draft: { kind, name }, onChange }: FieldsProps) {
  return (
    <div className="push-recipients">
      <Field label="To">
        {({ id }) => (
          <Select<Kind> id={id} value={kind} options={kinds} onChange={(next) => onChange({ kind: next })} />
        )}
      </Field>
      {kind !== 'all' && (
        <TextField
          label={kind === 'user' ? 'User id' : 'Topic'}
          required
          maxLength={256}
          spellCheck={false}
          autoComplete="off"
          {...(kind === 'topic' ? { pattern: topicPattern, title: 'Letters, digits and - _ . ~ %' } : {})}
          value={name}
          onChange={(event) => onChange({ name: event.target.value })}
        />
      )}
    </div>
  )
}

function MessageFields({ draft, problem, onChange }: FieldsProps & { readonly problem: string | null }) {
  return (
    <>
      <TextField
        label="Title"
        required
        value={draft.title}
        onChange={(event) => onChange({ title: event.target.value })}
      />
      <Field label="Text">
        {(control) => (
          <textarea
            {...control}
            className="input"
            rows={3}
            required
            value={draft.body}
            onChange={(event) => onChange({ body: event.target.value })}
          />
        )}
      </Field>
      <TextField
        label="Link"
        type="url"
        hint="Sent as data.url. Your application opens it when the message is clicked."
        value={draft.url}
        onChange={(event) => onChange({ url: event.target.value })}
      />
      <Field label="Data" hint="A JSON object for your application." error={problem}>
        {(control) => (
          <textarea
            {...control}
            className="input push-data"
            rows={3}
            spellCheck={false}
            value={draft.data}
            onChange={(event) => onChange({ data: event.target.value })}
          />
        )}
      </Field>
    </>
  )
}

function AudienceNote({ to, audience }: { readonly to: Recipients | null; readonly audience: Audience | undefined }) {
  if (to === null || audience === undefined) return null
  const { fcm, web } = audience.providers
  return (
    <p className="push-audience">
      <Icon name="info" size={14} />
      {!fcm && !web
        ? 'No provider is configured: set push.fcm or push.vapid in the configuration.'
        : audience.devices === 0
          ? 'No device would receive it.'
          : `Reaches ${describeAudience(audience)}.`}
    </p>
  )
}

/** Roughly what a device shows: text only, nothing of it is a link or markup. */
function Preview({ draft: { title, body, url } }: { readonly draft: Draft }) {
  return (
    <Card title="Preview">
      <div className="push-preview">
        <span className="push-preview-icon" aria-hidden="true">
          <Icon name="push" />
        </span>
        <div className="push-preview-text">
          <strong dir="auto">{title || 'Title'}</strong>
          <p dir="auto">{body || 'Text of the message'}</p>
          {url.trim() !== '' && <code>{url.trim()}</code>}
        </div>
      </div>
    </Card>
  )
}
