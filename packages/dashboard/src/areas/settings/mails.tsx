/** The mails about accounts: each with sample values in each of its languages, and a test to the own address. */

import { usePermits } from '../../app/permissions.ts'
import { session } from '../../app/session-store.ts'
import { useStore } from '../../app/store.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Spacer, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { type MailTemplates, useMailPreview, useMailTemplates, useTestMail } from './requests.ts'

const titles: Readonly<Record<string, string>> = {
  'magic-link': 'Sign-in link',
  'email-otp': 'Sign-in code',
  invitation: 'Invitation',
  'password-reset': 'Password reset',
  'password-changed': 'Password changed',
  'email-verification': 'Address verification',
  'email-change': 'Address change',
  'email-change-notice': 'Notice of an address change',
}

const routes: Readonly<Record<MailTemplates['route'], string>> = {
  smtp: 'through the mail server',
  outbox: 'into the outbox of development',
  none: 'once a mail server is configured',
}

const languageNames = new Intl.DisplayNames('en', { type: 'language', fallback: 'code' })

export function Mails() {
  const url = useUrlState()
  const { data, error, refetch } = useMailTemplates()
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton lines={8} />
  const { templates, route, from, appName } = data
  const template = templates.find(({ name }) => name === url.get('mail')) ?? templates[0]
  if (template === undefined) return null
  const language = template.languages.find((one) => one === url.get('language')) ?? template.languages[0] ?? 'en'
  const isText = url.get('form') === 'text'
  return (
    <div className="stack">
      <p className="settings-lead">
        {appName} sends these to users about their accounts, {routes[route]}
        {from !== null && (
          <>
            {' '}
            from <code>{from}</code>
          </>
        )}
        . Texts of your own and in other languages are <code>auth.mail.templates</code> of the configuration.
      </p>
      <Toolbar label="Mail">
        <Select
          label="Mail"
          className="settings-select"
          value={template.name}
          options={templates.map(({ name }) => ({ value: name, label: titles[name] ?? name }))}
          onChange={(mail) => url.set({ mail, language: null })}
        />
        <Select
          label="Language"
          className="settings-select"
          value={language}
          options={template.languages.map((value) => ({ value, label: languageNames.of(value) ?? value }))}
          onChange={(next) => url.set({ language: next })}
        />
        <Select
          label="Form"
          className="settings-select"
          value={isText ? 'text' : 'html'}
          options={[
            { value: 'html', label: 'HTML' },
            { value: 'text', label: 'Plain text' },
          ]}
          onChange={(form) => url.set({ form: form === 'html' ? null : form })}
        />
        <Badge tone={template.configured.includes(language) ? 'accent' : 'neutral'}>
          {template.configured.includes(language) ? 'From the configuration' : 'Built in'}
        </Badge>
        <Spacer />
        <TestButton name={template.name} language={language} route={route} />
      </Toolbar>
      <Preview name={template.name} language={language} isText={isText} />
    </div>
  )
}

function Preview({
  name,
  language,
  isText,
}: {
  readonly name: string
  readonly language: string
  readonly isText: boolean
}) {
  const { data, error, refetch } = useMailPreview(name, language)
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton lines={10} />
  return (
    <section className="settings-mail" aria-label="Preview">
      <header>
        <h2>{data.subject}</h2>
        <p>With sample values; its links open nothing.</p>
      </header>
      {isText ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
        <pre tabIndex={0}>{data.text}</pre>
      ) : (
        // Without any permission: no scripts, no forms, no navigation of the page.
        <iframe title={`Preview of ${data.subject}`} sandbox="" src={data.url} />
      )}
    </section>
  )
}

function TestButton({
  name,
  language,
  route,
}: {
  readonly name: string
  readonly language: string
  readonly route: MailTemplates['route']
}) {
  const mayChange = usePermits()('dashboard:settings:*:write')
  const email = useStore(session.current)?.user.email ?? null
  const toasts = useToasts()
  const test = useTestMail()
  if (!mayChange || email === null) return null
  const send = (): void =>
    test.mutate(
      { name, language },
      {
        onSuccess: ({ to, error, route: taken }) => {
          if (error !== null) toasts.fail('The mail was not sent', new Error(error))
          else toasts.add({ title: taken === 'smtp' ? `Sent to ${to}` : 'Saved in the outbox', tone: 'good' })
        },
        onError: (error) => toasts.fail('The mail was not sent', error),
      },
    )
  return (
    <Button
      disabled={route === 'none'}
      isBusy={test.isPending}
      title={route === 'none' ? 'No mail server is configured' : `To ${email}`}
      onClick={send}
    >
      Send to me
    </Button>
  )
}
