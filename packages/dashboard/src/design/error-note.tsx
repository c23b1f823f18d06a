/** An error where it happened: what is wrong, with the fields that the server names, and how to repeat it. */
import { Button } from './button.tsx'
import { describeError } from './describe-error.ts'
import { Icon } from './icons.tsx'

export function ErrorNote({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { title, advice, details, requestId } = describeError(error)
  return (
    <div className="error-note" role="alert">
      <Icon name="alert" />
      <div className="error-note-text">
        <strong>{title}</strong>
        {advice !== null && <p>{advice}</p>}
        {details.length > 0 && (
          <ul>
            {details.map(({ name, message }) => (
              <li key={name}>
                <code>{name}</code> {message}
              </li>
            ))}
          </ul>
        )}
        {requestId !== null && <p className="error-note-id">Request {requestId}</p>}
      </div>
      {onRetry && (
        <Button size="small" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}
