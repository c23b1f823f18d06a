/** Access to the endpoints of functions, for the endpoint matrix. Each function decides who may call it. */
import type { Client } from '../client.ts'
import { anyone } from './endpoint-access.ts'

/** There are no functions here: every caller gets 404. */
const called = { ...anyone, isJudgedByBody: true } as const

const admin = { kind: 'service', scope: 'functions:admin:*:write' } as const
const reader = { kind: 'service', scope: 'functions:admin:*:read' } as const
/** There is no such job or queue: who may call gets 404. */
const missing = { ...admin, isJudgedByBody: true } as const

export const functionsAccess = {
  'functions.get': { ...called, send: (client: Client) => client.get('/api/fn/none') },
  'functions.call': { ...called, send: (client: Client) => client.post('/api/fn/none', {}) },
  'functions.put': { ...called, send: (client: Client) => client.request('PUT', '/api/fn/none') },
  'functions.patch': { ...called, send: (client: Client) => client.patch('/api/fn/none', {}) },
  'functions.delete': { ...called, send: (client: Client) => client.delete('/api/fn/none') },
  'functions.list': {
    kind: 'service',
    scope: 'functions:admin:*:read',
    send: (client: Client) => client.get('/api/functions'),
  },
  'functions.logs': { ...reader, send: (client: Client) => client.get('/api/functions/logs') },
  'functions.listJobs': { ...reader, send: (client: Client) => client.get('/api/functions/jobs') },
  'functions.enqueue': { ...missing, send: (client: Client) => client.post('/api/functions/jobs', { queue: 'none' }) },
  'functions.getJob': { ...missing, ...reader, send: (client: Client) => client.get('/api/functions/jobs/none') },
  'functions.retryJob': {
    ...missing,
    send: (client: Client) => client.post('/api/functions/jobs/none/retry', undefined),
  },
  'functions.cancelJob': {
    ...missing,
    send: (client: Client) => client.post('/api/functions/jobs/none/cancel', undefined),
  },
  'functions.listSchedules': { ...reader, send: (client: Client) => client.get('/api/functions/schedules') },
  'functions.listQueues': { ...reader, send: (client: Client) => client.get('/api/functions/queues') },
  'functions.listHosts': { ...reader, send: (client: Client) => client.get('/api/functions/hosts') },
  'functions.pauseQueue': {
    ...missing,
    send: (client: Client) => client.post('/api/functions/queues/none/pause', undefined),
  },
  'functions.resumeQueue': {
    ...missing,
    send: (client: Client) => client.post('/api/functions/queues/none/resume', undefined),
  },
  // Without functions no mail can be sent: who may call gets 404.
  'functions.mail': {
    ...missing,
    send: (client: Client) =>
      client.post('/api/functions/mail', { to: 'ada@example.org', subject: 'Hello', text: 'Hello' }),
  },
  'functions.secrets.list': { ...reader, send: (client: Client) => client.get('/api/functions/secrets') },
  'functions.secrets.set': {
    ...admin,
    send: (client: Client) => client.request('PUT', '/api/functions/secrets/KEY', { body: { value: 'value' } }),
  },
  'functions.secrets.remove': { ...missing, send: (client: Client) => client.delete('/api/functions/secrets/NONE') },
} as const
