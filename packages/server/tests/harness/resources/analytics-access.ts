/** Who may ask the endpoints of analytics, for the matrix of all endpoints. */
import type { Client } from '../client.ts'

const scope = 'analytics:*:*:*'

export const analyticsScopes = [scope] as const

export const analyticsAccess = {
  'analytics.track': {
    kind: 'public',
    scope,
    ask: (client: Client) => client.post('/api/analytics/track', { events: [{ name: 'asked' }] }),
  },
  'analytics.query': { kind: 'service', scope, ask: (client: Client) => client.get('/api/analytics/query') },
  'analytics.events': { kind: 'service', scope, ask: (client: Client) => client.get('/api/analytics/events') },
} as const
