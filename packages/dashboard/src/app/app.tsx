/** The dashboard: the session decides between the sign-in and the shell. */
import { QueryClientProvider } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Router } from 'wouter'
import { ErrorNote } from '../design/error-note.tsx'
import { ToastProvider } from '../design/toast.tsx'
import { TooltipProvider } from '../design/tooltip.tsx'
import { ErrorBoundary } from './error-boundary.tsx'
import { queryClient } from './queries.ts'
import { loadSession } from './session-requests.ts'
import { session } from './session-store.ts'
import { Shell } from './shell.tsx'
import { EntryPage, SignInDialog, SignInPage } from './sign-in.tsx'
import { useStore } from './store.ts'
import { basePath } from './transport.ts'

export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      <ToastProvider>
        <TooltipProvider delay={350}>
          <Router base={basePath}>
            <ErrorBoundary resetKey="app">
              <Gate />
            </ErrorBoundary>
            <SignInDialog />
          </Router>
        </TooltipProvider>
      </ToastProvider>
    </QueryClientProvider>
  )
}

function Gate() {
  const current = useStore(session.current)
  const [error, setError] = useState<unknown>(null)
  const load = (): void => {
    setError(null)
    loadSession().catch(setError)
  }
  const otherViews = useStore(session.otherViews)
  useEffect(load, [otherViews])
  useEffect(() => {
    // The answers belong to the administrator who requested them.
    if (current === null) queryClient.clear()
  }, [current])
  // Nothing that one caller sees stays on the page of another.
  if (current) return <Shell key={current.viewing?.id} current={current} />
  if (current === null) return <SignInPage />
  if (error === null) return null
  return (
    <EntryPage title="Plinth" text="The dashboard of this server.">
      <ErrorNote error={error} onRetry={load} />
    </EntryPage>
  )
}
