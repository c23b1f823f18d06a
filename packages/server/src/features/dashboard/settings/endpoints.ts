/** The endpoint of the settings of the server. */
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { type ServerSettings, serverSettingsSchema } from './server-settings.ts'

export const createSettingsEndpoint = (serverSettings: () => ServerSettings): Endpoint =>
  endpoint({
    name: 'dashboard.getSettings',
    method: 'GET',
    paths: [`${dashboardPath}/api/settings`],
    tag: 'Dashboard',
    credentials: 'admin',
    rateLimit: 'global',
    isSecret: true,
    summary: 'Get the settings of the server, without secrets',
    scope: () => 'dashboard:settings:*:read',
    replies: { 200: { description: 'Engines, limits and retention', schema: serverSettingsSchema } },
    handle: () => json(serverSettings()),
  })
