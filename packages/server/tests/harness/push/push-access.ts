/** Access to the push endpoints, for the endpoint matrix. */
import type { Answer, Client } from '../client.ts'

export const pushScopes = [
  'push:notification:*:send',
  'push:token:*:read',
  'push:token:*:write',
  'push:log:*:read',
] as const

const signedIn = { kind: 'user', scope: null } as const
const sender = { kind: 'key', scope: 'push:notification:*:send' } as const
const request = (method: string, path: string) => (client: Client) => client.request(method, path)
/** An endpoint whose empty body fails validation once access is granted. */
const judged = (path: string, method = 'POST') =>
  ({
    isJudgedByBody: true,
    send: (client: Client): Promise<Answer> => client.request(method, path, { body: {} }),
  }) as const

export const pushAccess = {
  'push.register': { ...signedIn, ...judged('/api/push/register') },
  'push.unregister': { ...signedIn, ...judged('/api/push/unregister') },
  'push.subscribe': { ...signedIn, ...judged('/api/push/topic/subscribe') },
  'push.unsubscribe': { ...signedIn, ...judged('/api/push/topic/unsubscribe') },
  'push.send': { ...sender, ...judged('/api/push/send') },
  'push.sendMany': { ...sender, ...judged('/api/push/send-many') },
  'push.sendToToken': { ...sender, ...judged('/api/push/send-to-token') },
  'push.sendToTopic': { ...sender, ...judged('/api/push/send-to-topic') },
  'push.broadcast': { ...sender, ...judged('/api/push/broadcast') },
  'push.setMetadata': { kind: 'key', scope: 'push:token:*:write', ...judged('/api/push/tokens', 'PATCH') },
  'push.tokens': { kind: 'key', scope: 'push:token:*:read', send: request('GET', '/api/push/tokens?userId=a') },
  'push.logs': { kind: 'key', scope: 'push:log:*:read', send: request('GET', '/api/push/logs') },
} as const
