/**
 * The page of the set-up link: a form for the email and password of the first administrator. The token is in the
 * fragment of the link, which browsers never send; the page posts it in a request body.
 */
import { createHash } from 'node:crypto'
import { tokensCss } from '../../../http/pages/design-tokens.ts'
import { logo } from '../../../http/pages/logo.ts'

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
${tokensCss}* { box-sizing: border-box; }
body {
  margin: 0; min-height: 100vh; display: grid; place-content: center; padding: var(--space-6) var(--space-4);
  background: radial-gradient(ellipse 900px 460px at 50% -80px, var(--accent-soft), transparent 75%), var(--ground);
  color: var(--text); font: var(--text-13)/var(--line-body) var(--font-sans);
}
main {
  width: min(380px, calc(100vw - 32px)); padding: var(--space-8); border: 1px solid var(--line);
  border-radius: var(--radius-4); background: var(--raised); box-shadow: var(--shadow-2);
}
svg { width: 32px; height: 32px; color: var(--accent); }
h1 { margin: var(--space-2) 0 var(--space-1); font-size: var(--text-20); letter-spacing: -.015em; }
header p { margin: 0 0 var(--space-5); color: var(--text-2); }
label { display: block; margin-bottom: var(--space-4); font-size: var(--text-12); }
input {
  display: block; width: 100%; height: var(--control-large); margin-top: var(--space-1); padding: 0 var(--space-3);
  border: 1px solid var(--line-strong); border-radius: var(--radius-2); background: var(--field); color: inherit;
  font: var(--text-14) var(--font-sans);
}
button {
  width: 100%; height: var(--control-large); border: 0; border-radius: var(--radius-2); cursor: pointer;
  background: var(--accent); color: var(--text-on-accent); font: 600 var(--text-14) var(--font-sans);
}
button:hover { background: var(--accent-hover); }
:is(input, button):focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
output { display: block; margin-top: var(--space-4); }
output:empty { display: none; }
`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  'img-src data:',
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
<meta name="color-scheme" content="light dark">
<title>First administrator</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<header>${logo}<h1>Welcome to Plinth</h1><p>Create the first administrator of this server.</p></header>
<form>
<label>Email <input name="email" type="email" required autocomplete="username"></label>
<label>Password <input name="password" type="password" required minlength="8" autocomplete="new-password"></label>
<button>Create administrator</button>
</form>
<output></output>
</main>
<script>${script}</script>
</body>
</html>
`
