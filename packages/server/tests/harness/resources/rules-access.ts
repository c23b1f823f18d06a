/** Access to the tools for access rules, for the endpoint matrix. */
import type { Client } from '../client.ts'

export const rulesAccess = {
  // Without a rule there is nothing to run.
  'rules.shadow': {
    kind: 'service',
    scope: 'dashboard:rules:*:explain',
    isJudgedByBody: true,
    send: (client: Client) => client.post('/api/rules/shadow', {}),
  },
  'rules.source': {
    kind: 'service',
    scope: 'dashboard:rules:*:explain',
    send: (client: Client) => client.get('/api/rules/source?namespace=shared&table=denied&operation=read'),
  },
  'rules.matrix': {
    kind: 'service',
    scope: 'dashboard:rules:*:explain',
    send: (client: Client) => client.get('/api/rules/matrix'),
  },
  'rules.explain': {
    kind: 'service',
    scope: 'dashboard:rules:*:explain',
    send: (client: Client) =>
      client.post('/api/rules/explain', {
        namespace: 'shared',
        table: 'denied',
        operation: 'list',
        caller: { kind: 'anonymous' },
      }),
  },
} as const
