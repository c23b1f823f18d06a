/** What the role of the administrator permits. The server decides; the page only leaves out what would be refused. */
import { useMemo } from 'react'
import { session } from './session-store.ts'
import { useStore } from './store.ts'

/** Whether scopes as of service keys, `area:type:name:action` with `*` for any part, include one. */
export const permits = (scopes: readonly string[], wanted: string): boolean => {
  const parts = wanted.split(':')
  return scopes.some((scope) => {
    if (scope === '*') return true
    const granted = scope.split(':')
    // `*` in what is wanted stands for any: a page is shown to those who may see some of it.
    return (
      granted.length === parts.length &&
      granted.every((part, at) => part === '*' || parts[at] === '*' || part === parts[at])
    )
  })
}

/** A function that says whether the administrator has a scope. */
export function usePermits(): (scope: string) => boolean {
  const current = useStore(session.current)
  return useMemo(() => {
    const scopes = current?.scopes ?? []
    const isReadOnly = current?.isReadOnly ?? true
    return (scope) => permits(scopes, scope) && !(isReadOnly && !/:(?:read|query)$/.test(scope))
  }, [current])
}

/** Whether every request but a read is refused, also one that only asks, such as for a signed link. */
export const useIsReadOnly = (): boolean => useStore(session.current)?.isReadOnly ?? true
