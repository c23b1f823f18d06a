/** Sends an action in the name of a member, and shows what the member would have received. */
import { lazy, Suspense, useState } from 'react'
import { useSchema } from '../../app/queries.ts'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Field, TextField } from '../../design/field.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { parseJson } from '../../text/json.ts'
import { type ActionAnswer, type RoomKey, useSendAsPlayer } from './requests.ts'

const JsonEditor = lazy(async () => ({ default: (await import('../../design/editor/json-editor.tsx')).JsonEditor }))

export interface SendAsPlayerProps {
  readonly room: RoomKey
  readonly userId: string
  readonly onClose: () => void
}

export function SendAsPlayer({ room, userId, onClose }: SendAsPlayerProps) {
  const actions = useSchema().data?.rooms[room.namespace]?.actions ?? []
  const [chosen, setActionType] = useState<string | null>(null)
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const send = useSendAsPlayer(room)
  const actionType = chosen ?? actions[0] ?? ''

  const submit = (): void => {
    // An empty text is no payload.
    const parsed = text.trim() === '' ? null : parseJson(text)
    const isInvalid = parsed !== null && 'problem' in parsed
    setProblem(isInvalid ? parsed.problem : null)
    if (!isInvalid) send.mutate({ userId, actionType, ...(parsed && { payload: parsed.value }) })
  }
  return (
    <Dialog
      isOpen
      isSticky
      onClose={onClose}
      title="Send as player"
      description={`Your rule for actions decides as if ${userId} had sent it. The log of the room and the audit log name you.`}
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button
            kind="primary"
            type="submit"
            form="send-as-player"
            isBusy={send.isPending}
            disabled={actionType === ''}
          >
            Send action
          </Button>
        </>
      }
    >
      <form
        id="send-as-player"
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        {actions.length > 0 ? (
          <Field label="Action">
            {({ id }) => (
              <Select
                id={id}
                value={actionType}
                options={actions.map((name) => ({ value: name, label: name }))}
                onChange={setActionType}
              />
            )}
          </Field>
        ) : (
          <TextField label="Action" value={actionType} onChange={(event) => setActionType(event.target.value)} />
        )}
        <Field label="Payload" hint="JSON; empty for none." error={problem}>
          {() => (
            <Suspense fallback={<Skeleton lines={3} />}>
              <JsonEditor label="Payload" text={text} onChange={setText} />
            </Suspense>
          )}
        </Field>
        {send.error !== null && <ErrorNote error={send.error} />}
        {send.data !== undefined && !send.isPending && <Answer answer={send.data} />}
      </form>
    </Dialog>
  )
}

const Answer = ({ answer }: { readonly answer: ActionAnswer }) =>
  answer.ok ? (
    <CodeBlock label="The action ran; its result" code={JSON.stringify(answer.result ?? null, null, 2)} />
  ) : (
    <CodeBlock label="The action was refused" code={`${answer.error.code}: ${answer.error.message}`} />
  )
