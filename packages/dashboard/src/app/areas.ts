/** The areas of the dashboard, in the order of the rail. Each is a chunk of its own. */
import type { ComponentType } from 'react'
import type { IconName } from '../design/icons.tsx'

export interface Area {
  readonly id: string
  readonly title: string
  /** Under `/dashboard`. The area receives every path that begins with it. */
  readonly path: string
  readonly icon: IconName
  /** The scope without which it is not shown; `*` parts stand for any. Null for all administrators. */
  readonly scope: string | null
  /** What else a search in the palette finds it by. */
  readonly words?: string
  /** Shows a user's own data while an administrator views as that user; the others are not offered then. */
  readonly showsViewedUser?: true
  readonly load: () => Promise<{ readonly default: ComponentType }>
}

export const areas: readonly Area[] = [
  {
    id: 'home',
    title: 'Home',
    path: '/',
    icon: 'home',
    scope: null,
    words: 'overview health status errors',
    load: () => import('../areas/home/index.tsx'),
  },
  {
    id: 'data',
    title: 'Data',
    path: '/data',
    icon: 'data',
    scope: 'db:table:*:read',
    words: 'tables records rows grid schema namespaces tenants',
    showsViewedUser: true,
    load: () => import('../areas/data/index.tsx'),
  },
  {
    id: 'rules',
    title: 'Rules',
    path: '/rules',
    icon: 'rules',
    scope: 'dashboard:rules:*:explain',
    words: 'access permissions explain why playground matrix attack denied 401 403 404',
    load: () => import('../areas/rules/index.tsx'),
  },
  {
    id: 'users',
    title: 'Users',
    path: '/users',
    icon: 'users',
    scope: 'auth:admin:*:read',
    words: 'accounts sessions invite claims roles disable sign-in',
    load: () => import('../areas/users/index.tsx'),
  },
  {
    id: 'files',
    title: 'Files',
    path: '/files',
    icon: 'files',
    scope: 'storage:bucket:*:read',
    words: 'buckets storage uploads folders images signed links',
    showsViewedUser: true,
    load: () => import('../areas/files/index.tsx'),
  },
  {
    id: 'live',
    title: 'Live',
    path: '/live',
    icon: 'live',
    scope: 'rooms:namespace:*:read',
    words: 'rooms players members kick sockets subscriptions channels nodes realtime',
    load: () => import('../areas/live/index.tsx'),
  },
  {
    id: 'code',
    title: 'Code',
    path: '/code',
    icon: 'code',
    scope: 'functions:admin:*:read',
    words: 'functions jobs queues schedules cron webhooks dead letters retry',
    load: () => import('../areas/code/index.tsx'),
  },
  {
    id: 'stores',
    title: 'Stores',
    path: '/stores',
    icon: 'stores',
    scope: 'schema:endpoint:*:read',
    words: 'kv key-value sql console query vector indexes search',
    load: () => import('../areas/stores/index.tsx'),
  },
  {
    id: 'push',
    title: 'Push',
    path: '/push',
    icon: 'push',
    scope: 'push:log:*:read',
    words: 'notifications messages send topics devices broadcast log',
    load: () => import('../areas/push/index.tsx'),
  },
  {
    id: 'insights',
    title: 'Insights',
    path: '/insights',
    icon: 'insights',
    scope: 'dashboard:requests:*:read',
    words: 'requests traffic latency errors events analytics charts',
    load: () => import('../areas/insights/index.tsx'),
  },
  {
    id: 'logs',
    title: 'Logs',
    path: '/logs',
    icon: 'logs',
    scope: 'system:logs:*:read',
    words: 'errors events lines requests search',
    load: () => import('../areas/logs/index.tsx'),
  },
  {
    id: 'backups',
    title: 'Backups',
    path: '/backups',
    icon: 'backups',
    scope: 'system:backup:*:read',
    words: 'archive restore backup',
    load: () => import('../areas/backups/index.tsx'),
  },
  {
    id: 'settings',
    title: 'Settings',
    path: '/settings',
    icon: 'settings',
    scope: 'dashboard:audit:*:read',
    words: 'administrators roles audit log export verify',
    load: () => import('../areas/settings/index.tsx'),
  },
]

/** The area that shows a path. */
export const areaOf = (path: string): Area | undefined =>
  areas.find((area) => path === area.path || (area.path !== '/' && path.startsWith(`${area.path}/`)))
