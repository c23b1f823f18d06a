/**
 * The page of the set-up link: a form for the email and password of the first administrator. The token is in the
 * fragment of the link, which browsers never send; the page posts it in a request body.
 */
import { createHash } from 'node:crypto'

/** Runs in the browser. Does not create markup. */
function setUp(): void {
  const form = document.querySelector('form') as HTMLFormElement
  const status = document.querySelector('output') as HTMLOutputElement
  const token = location.hash.slice(1)
  // Keeps the token out of the history and of bookmarks.
  history.replaceState(null, '', location.pathname)
  const fieldsOf = (): { email: string; password: string } => {
    const data = new FormData(form)
    return { email: String(data.get('email')), password: String(data.get('password')) }
  }
  async function send(): Promise<void> {
    const body = JSON.stringify({ token, ...fieldsOf() })
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch('/api/auth/setup', { method: 'POST', headers, body })
    const { message } = await response.json()
    if (response.ok) {
      form.hidden = true
      status.textContent = 'The first administrator has been created and can sign in.'
    } else {
      const hint = response.status === 401 ? ' The link was used, has expired, or is no longer needed.' : ''
      status.textContent = `${message}.${hint}`
    }
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send().catch(() => {
      status.textContent = 'The server cannot be reached.'
    })
  })
}

const script = `(${setUp.toString()})()`
const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 22rem; margin: 15vh auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; }
label { display: block; margin-bottom: 1rem; }
input, button { display: block; width: 100%; box-sizing: border-box; padding: .5rem; font: inherit; }
output { display: block; margin-top: 1rem; }
`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const setupPageHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': policy,
  'Referrer-Policy': 'no-referrer',
}

export const setupPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>First administrator</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<h1>First administrator</h1>
<form>
<label>Email <input name="email" type="email" required autocomplete="username"></label>
<label>Password <input name="password" type="password" required minlength="8" autocomplete="new-password"></label>
<button>Create</button>
</form>
<output></output>
<script>${script}</script>
</body>
</html>
`
