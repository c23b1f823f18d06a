/** A signed link that was just created. It cannot be shown again: the server does not store it. */
import type { ReactNode } from 'react'
import { CodeBlock } from '../../../design/code-block.tsx'
import { formatAge, formatTime } from '../../../design/format-time.ts'
import type { SignedLink } from './requests.ts'

export function CreatedLink({
  link,
  label,
  command,
  children,
}: {
  readonly link: SignedLink
  readonly label: string
  /** How to use it from a shell. */
  readonly command?: string
  /** What ends it before it expires. */
  readonly children: ReactNode
}) {
  return (
    <div className="files-link">
      <CodeBlock label={label} code={new URL(link.url, window.location.href).href} />
      {command !== undefined && <CodeBlock label="Shell" code={command} />}
      <p>
        Expires {formatAge(link.expiresAt)}, at <time dateTime={link.expiresAt}>{formatTime(link.expiresAt)}</time>.{' '}
        {children}
      </p>
    </div>
  )
}
