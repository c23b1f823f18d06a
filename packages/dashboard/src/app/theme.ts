/** Light, dark, or as the system has it. `theme-start.ts` applies the choice before the first paint. */
import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const storageKey = 'plinth-dashboard-theme'
const listeners = new Set<() => void>()

const isTheme = (value: string | null): value is Theme => value === 'light' || value === 'dark' || value === 'system'

export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(storageKey)
    return isTheme(stored) ? stored : 'system'
  } catch {
    return 'system'
  }
}

/** Applies a theme to the page. */
export function showTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(storageKey, theme)
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  showTheme(theme)
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, readTheme)
