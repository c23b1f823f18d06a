/** State of a view that is part of its URL, so that a reload, a bookmark and the back button keep it. */
import { useCallback, useMemo } from 'react'
import { useLocation, useSearch } from 'wouter'

export interface UrlState {
  /** The value of a parameter; null if it is absent. */
  get(name: string): string | null
  /** Sets parameters, and removes those that are null or empty. `replace` leaves no entry in the history. */
  set(values: Readonly<Record<string, string | null>>, options?: { readonly replace?: boolean }): void
  /** The URL of this view with other parameters, for links. */
  href(values: Readonly<Record<string, string | null>>): string
}

const changed = (search: string, values: Readonly<Record<string, string | null>>): string => {
  const params = new URLSearchParams(search)
  for (const [name, value] of Object.entries(values))
    if (value === null || value === '') params.delete(name)
    else params.set(name, value)
  return params.toString()
}

export function useUrlState(): UrlState {
  const [path, navigate] = useLocation()
  const search = useSearch()
  const href = useCallback(
    (values: Readonly<Record<string, string | null>>) => {
      const next = changed(search, values)
      return next === '' ? path : `${path}?${next}`
    },
    [path, search],
  )
  return useMemo(
    () => ({
      get: (name) => new URLSearchParams(search).get(name),
      set: (values, { replace = false } = {}) => navigate(href(values), { replace }),
      href,
    }),
    [search, href, navigate],
  )
}
