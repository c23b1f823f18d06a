/** Access to the analytics endpoints, for the endpoint matrix. */
import type { Client } from '../client.ts'

const readScope = 'analytics:*:*:read'
const writeScope = 'analytics:*:*:write'

export const analyticsScopes = [readScope, writeScope] as const

export const analyticsAccess = {
  'analytics.track': {
    kind: 'public',
    scope: writeScope,
    send: (client: Client) => client.post('/api/analytics/track', { events: [{ name: 'asked' }] }),
  },
  'analytics.query': {
    kind: 'service',
    scope: readScope,
    send: (client: Client) => client.get('/api/analytics/query'),
  },
  'analytics.events': {
    kind: 'service',
    scope: readScope,
    send: (client: Client) => client.get('/api/analytics/events'),
  },
} as const
