/** Access to the endpoints of the system feature, for the endpoint matrix. */
import type { Client } from '../client.ts'
import { anyone } from './endpoint-access.ts'

export const systemAccess = {
  'system.home': { ...anyone, send: (client: Client) => client.get('/') },
  'system.health': { ...anyone, send: (client: Client) => client.get('/api/health') },
  'system.config': { ...anyone, send: (client: Client) => client.get('/api/config') },
  'system.schema': {
    kind: 'rules',
    scope: 'schema:endpoint:*:read',
    send: (client: Client) => client.get('/api/schema'),
  },
  'system.openapi': { ...anyone, send: (client: Client) => client.get('/openapi.json') },
  'system.docs': { ...anyone, send: (client: Client) => client.get('/docs') },
  'system.metrics': { kind: 'service', scope: '*', send: (client: Client) => client.get('/metrics') },
  'system.stores': {
    kind: 'service',
    scope: 'schema:endpoint:*:read',
    send: (client: Client) => client.get('/api/stores'),
  },
  'system.nodes': { kind: 'service', scope: 'system:nodes:*:read', send: (client: Client) => client.get('/api/nodes') },
  'system.advice': {
    kind: 'service',
    scope: 'system:advice:*:read',
    send: (client: Client) => client.get('/api/advice'),
  },
  'system.logs': { kind: 'service', scope: 'system:logs:*:read', send: (client: Client) => client.get('/api/logs') },
} as const
