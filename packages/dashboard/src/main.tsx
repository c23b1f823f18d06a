/** Entry of the page, at `/dashboard`, and at `/dashboard/setup` before there is an administrator. */
import { CSPProvider } from '@base-ui/react/csp-provider'
import { type ReactNode, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app/app.tsx'
import { styleNonce } from './design/editor/style-nonce.ts'
import { ToastProvider } from './design/toast.tsx'
import { TooltipProvider } from './design/tooltip.tsx'
import { SetupPage, takeSetupToken } from './setup/setup-page.tsx'

const setupPath = '/dashboard/setup'

function contentOf(path: string): ReactNode {
  if (path !== setupPath) return <App />
  return (
    <ToastProvider>
      <TooltipProvider>
        <SetupPage token={takeSetupToken()} />
      </TooltipProvider>
    </ToastProvider>
  )
}

const root = document.getElementById('root')
if (root === null) throw new Error('The page has no element "root"')
createRoot(root).render(
  <StrictMode>
    <CSPProvider nonce={styleNonce} disableStyleElements>
      {contentOf(location.pathname)}
    </CSPProvider>
  </StrictMode>,
)
