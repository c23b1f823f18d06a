/** What the palette offers for a text: areas, actions, tables, and the user of an email address. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { IconName } from '../../design/icons.tsx'
import type { Area } from '../areas.ts'
import { usePermits } from '../permissions.ts'
import { useSchema } from '../queries.ts'
import { signOut } from '../session-requests.ts'
import { tablePath } from '../table-path.ts'
import { chooseTheme } from '../theme.ts'
import { api } from '../transport.ts'

export interface Entry {
  readonly id: string
  readonly title: string
  /** What it is, such as `Table`. */
  readonly kind: string
  readonly icon: IconName
  /** Further words by which it is found. */
  readonly words?: string
  readonly href?: string
  readonly run?: () => void
}

const entriesMax = 40

const actions: readonly Entry[] = [
  { id: 'theme:light', title: 'Light theme', kind: 'Action', icon: 'sun', run: () => chooseTheme('light') },
  { id: 'theme:dark', title: 'Dark theme', kind: 'Action', icon: 'moon', run: () => chooseTheme('dark') },
  {
    id: 'theme:system',
    title: 'Theme of the system',
    kind: 'Action',
    icon: 'monitor',
    run: () => chooseTheme('system'),
  },
  { id: 'sign-out', title: 'Sign out', kind: 'Action', icon: 'sign-out', run: () => void signOut() },
]

/** Higher is better; 0 does not match. Every word must occur; beginnings of the title count most. */
export function score({ title, words = '', kind }: Entry, text: string): number {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
  const [own, rest] = [title.toLowerCase(), `${words} ${kind}`.toLowerCase()]
  let sum = 1
  for (const word of wanted) {
    if (own.startsWith(word)) sum += 8
    else if (new RegExp(`[\\s_./-]${escaped(word)}`).test(own)) sum += 5
    else if (own.includes(word)) sum += 3
    else if (rest.includes(word)) sum += 1
    else return 0
  }
  return sum
}

const escaped = (word: string): string => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

interface FoundUsers {
  readonly users: readonly { readonly id: string; readonly email: string | null }[]
}

/** The user whose email is the text, which the server finds by an index. */
function useUser(text: string, areas: readonly Area[]): Entry | null {
  const permits = usePermits()
  const isShown = permits('auth:admin:*:read') && areas.some(({ id }) => id === 'users')
  const email = text.trim()
  const { data } = useQuery({
    queryKey: ['palette-user', email],
    enabled: isShown && /^\S+@\S+\.\S+$/.test(email),
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => api.get<FoundUsers>('/api/auth/admin/users', { query: { email, limit: 1 }, signal }),
  })
  const user = data?.users.find((one) => one.email?.toLowerCase() === email.toLowerCase())
  if (!user) return null
  return {
    id: `user:${user.id}`,
    title: user.email ?? user.id,
    kind: 'User',
    icon: 'user',
    href: `/users/${encodeURIComponent(user.id)}`,
  }
}

export function useEntries(text: string, areas: readonly Area[]): readonly Entry[] {
  const { data: schema } = useSchema()
  const user = useUser(text, areas)
  const known = useMemo(() => {
    const tables = areas.some(({ id }) => id === 'data') ? Object.values(schema?.tables ?? {}) : []
    return [
      ...areas.map(
        ({ id, title, icon, path, words = '' }): Entry => ({
          id: `area:${id}`,
          title,
          kind: 'Area',
          icon,
          words,
          href: path,
        }),
      ),
      ...tables.map(
        (table): Entry => ({
          id: `table:${table.namespace}.${table.name}`,
          title: table.name,
          kind: table.namespace === 'shared' ? 'Table' : `Table in ${table.namespace}`,
          icon: 'table',
          words: table.namespace,
          href: tablePath(table, schema?.namespaces ?? {}),
        }),
      ),
      ...actions,
    ]
  }, [areas, schema])
  return useMemo(() => {
    const ranked = known
      .map((entry) => ({ entry, rank: score(entry, text) }))
      .filter(({ rank }) => rank > 0)
      .sort((one, other) => other.rank - one.rank)
      .map(({ entry }) => entry)
    return [...(user ? [user] : []), ...ranked].slice(0, entriesMax)
  }, [known, text, user])
}
