/** Code or a command to copy. */
import { useState } from 'react'
import { IconButton } from './button.tsx'
import { useToasts } from './toast.tsx'

export function CodeBlock({ code, label }: { readonly code: string; readonly label?: string }) {
  return (
    <figure className="code-block">
      {label !== undefined && <figcaption>{label}</figcaption>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} />
    </figure>
  )
}

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const toasts = useToasts()
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), 1500)
    } catch {
      toasts.add({ title: 'The browser did not allow access to the clipboard.', tone: 'bad' })
    }
  }
  return (
    <IconButton
      className="copy-button"
      size="small"
      icon={isCopied ? 'check' : 'copy'}
      label={isCopied ? 'Copied' : label}
      onClick={copy}
    />
  )
}
