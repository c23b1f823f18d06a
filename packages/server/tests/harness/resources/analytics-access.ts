/** Access to the analytics endpoints, for the endpoint matrix. */
import type { Client } from '../client.ts'

const scope = 'analytics:*:*:*'

export const analyticsScopes = [scope] as const

export const analyticsAccess = {
  'analytics.track': {
    kind: 'public',
    scope,
    send: (client: Client) => client.post('/api/analytics/track', { events: [{ name: 'asked' }] }),
  },
  'analytics.query': { kind: 'service', scope, send: (client: Client) => client.get('/api/analytics/query') },
  'analytics.events': { kind: 'service', scope, send: (client: Client) => client.get('/api/analytics/events') },
} as const
