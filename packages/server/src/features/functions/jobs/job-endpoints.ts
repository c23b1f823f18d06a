/** Endpoints of jobs for operators: list, inspect, retry, cancel; schedules; pause and resume. */
import { z } from '../../../base/schemas/z.ts'
import { conflict, notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { cursorParam, limitParam, textParam } from '../../../http/input/query-schema.ts'
import { createListCursors } from '../../../http/replies/list-cursor.ts'
import { json } from '../../../http/replies/reply.ts'
import { functionJobsListed, functionJobsListedMax, scheduleRunsListed } from '../../../limits/function-jobs.ts'
import type { BulkJobs } from '../../bulk-jobs.ts'
import type { Background } from '../background.ts'
import { bulkFunction } from './bulk-jobs.ts'
import { jobStatuses } from './job.ts'
import type { Changed, JobAdmin } from './job-admin.ts'
import { formatJob, formatQueues, formatTimes, jobSchema, queueSchema, scheduleSchema } from './job-schemas.ts'

export interface JobEndpointsDeps {
  readonly background: Background
  readonly bulkJobs: Pick<BulkJobs, 'cancel'>
  /** Seals cursors. */
  readonly secret: string
}

export const jobsCommon = {
  tag: 'Functions',
  credentials: 'service',
  scope: () => 'functions:admin:*:write',
  rateLimit: 'functions',
} as const

/** The scope of endpoints that change nothing. */
export const functionsReadScope = (): string => 'functions:admin:*:read'

const listSchema = z.object({
  queue: textParam('Only jobs of this queue or function'),
  status: z.enum(jobStatuses).optional(),
  limit: limitParam({ default: functionJobsListed, max: functionJobsListedMax }),
  cursor: cursorParam(),
})
const ok = z.object({ ok: z.literal(true) })

/** Throws 404 while no function has ever been declared. */
function adminOf(background: Background): JobAdmin {
  const { parts } = background
  if (!parts) throw notFound('Job')
  return parts.admin
}

function replyTo(changed: Changed, refusal: string) {
  if (changed === 'missing') throw notFound('Job')
  if (changed === 'refused') throw conflict(refusal)
  return json({ ok: true })
}

export const createJobEndpoints = (deps: JobEndpointsDeps): readonly Endpoint[] => [
  listEndpoint(deps),
  ...oneEndpoints(deps),
  schedulesEndpoint(deps),
  ...queueEndpoints(deps),
]

function listEndpoint({ background, secret }: JobEndpointsDeps): Endpoint {
  const cursors = createListCursors<[seq: number]>(secret, 'functions jobs')
  return endpoint({
    ...jobsCommon,
    name: 'functions.listJobs',
    method: 'GET',
    scope: functionsReadScope,
    paths: ['/api/functions/jobs'],
    summary: 'List jobs, the newest first',
    query: listSchema,
    replies: {
      200: {
        description: '`cursor` is null on the last page',
        schema: z.object({ items: z.array(jobSchema), cursor: z.string().nullable() }),
      },
    },
    async handle({ query: { queue = null, status = null, limit, cursor } }) {
      const { parts } = background
      if (!parts) return json({ items: [], cursor: null })
      const list = [queue, status]
      const [before] = cursor === undefined ? [null] : cursors.parse(list, cursor)
      const name = queue === null ? null : (background.findFunction(queue)?.name ?? queue)
      const found = await parts.admin.list({ function: name, status, before }, limit + 1)
      const items = found.slice(0, limit)
      const last = found.length > limit ? items.at(-1) : undefined
      return json({ items: items.map(formatJob), cursor: last ? cursors.format(list, [last.seq]) : null })
    },
  })
}

const oneEndpoints = ({ background, bulkJobs }: JobEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...jobsCommon,
    name: 'functions.getJob',
    method: 'GET',
    scope: functionsReadScope,
    paths: ['/api/functions/jobs/:id'],
    summary: 'Inspect a job with its input',
    replies: { 200: { description: 'The job', schema: jobSchema.extend({ input: z.unknown() }) } },
    errors: [404],
    async handle({ params: { id = '' } }) {
      const job = await adminOf(background).find(id)
      if (!job) throw notFound('Job')
      return json({ ...formatJob(job), input: JSON.parse(job.input) as unknown })
    },
  }),
  endpoint({
    ...jobsCommon,
    name: 'functions.retryJob',
    method: 'POST',
    paths: ['/api/functions/jobs/:id/retry'],
    summary: 'Run a dead job again, or a waiting one at once',
    replies: { 200: { description: 'It runs when a node has room', schema: ok } },
    errors: [404, 409],
    async handle({ params: { id = '' } }) {
      const admin = adminOf(background)
      const reply = replyTo(await admin.retry(id), 'The job runs or is done, or another one has its unique key')
      const job = await admin.find(id)
      if (job) background.parts?.runner.wake([job.function])
      return reply
    },
  }),
  endpoint({
    ...jobsCommon,
    name: 'functions.cancelJob',
    method: 'POST',
    paths: ['/api/functions/jobs/:id/cancel'],
    summary: 'Cancel an unfinished job',
    description: 'The job is dead. What it has done so far stays; the result of an attempt under way has no effect.',
    replies: { 200: { description: 'Canceled', schema: ok } },
    errors: [404, 409],
    async handle({ params: { id = '' } }) {
      const admin = adminOf(background)
      const isBulk = (await admin.find(id))?.function === bulkFunction
      const changed = isBulk ? ((await bulkJobs.cancel(id)) ? 'changed' : 'refused') : await admin.cancel(id)
      return replyTo(changed, 'The job is finished')
    },
  }),
]

const schedulesEndpoint = ({ background }: JobEndpointsDeps): Endpoint =>
  endpoint({
    ...jobsCommon,
    name: 'functions.listSchedules',
    method: 'GET',
    scope: functionsReadScope,
    paths: ['/api/functions/schedules'],
    summary: 'List the schedules with their next and last runs',
    replies: { 200: { description: 'By name', schema: z.object({ items: z.array(scheduleSchema) }) } },
    async handle() {
      const { parts, declared } = background
      if (!parts) return json({ items: [] })
      const times = new Map((await parts.schedules.times()).map((time) => [time.name, time]))
      const items = declared.schedules.map(async ({ name, cron, tz }) => {
        const time = times.get(name)
        const runs = (await parts.admin.latest(name, scheduleRunsListed)).map(formatJob)
        return { name, cron, tz: tz ?? 'UTC', ...(time ? formatTimes(time) : { nextAt: null, lastAt: null }), runs }
      })
      return json({ items: await Promise.all(items) })
    },
  })

function queueEndpoints({ background }: JobEndpointsDeps): readonly Endpoint[] {
  /** The function with jobs of this name. Throws 404. */
  const nameOf = (name: string): string => {
    const found = background.findFunction(name)
    if (!found) throw notFound('Queue')
    return found.name
  }
  return [
    endpoint({
      ...jobsCommon,
      scope: functionsReadScope,
      name: 'functions.listQueues',
      method: 'GET',
      paths: ['/api/functions/queues'],
      summary: 'List the queues and functions with jobs, and how many jobs each has',
      replies: { 200: { description: 'By name', schema: z.object({ items: z.array(queueSchema) }) } },
      async handle() {
        const { parts, declared } = background
        if (!parts) return json({ items: [] })
        const totals = await parts.admin.queues()
        const hasJobs = (name: string): boolean => totals.counts.some((count) => count.function === name)
        const listed = [...declared.functions.values()].filter(({ isOnDemand, name }) => !isOnDemand || hasJobs(name))
        return json({ items: formatQueues(listed, totals) })
      },
    }),
    endpoint({
      ...jobsCommon,
      name: 'functions.pauseQueue',
      method: 'POST',
      paths: ['/api/functions/queues/:name/pause'],
      summary: 'Start no more jobs of a queue or function',
      description: 'Jobs that run are finished, and others can be added.',
      replies: { 200: { description: 'Paused', schema: ok } },
      errors: [404],
      async handle({ params: { name = '' } }) {
        await adminOf(background).pause(nameOf(name))
        return json({ ok: true })
      },
    }),
    endpoint({
      ...jobsCommon,
      name: 'functions.resumeQueue',
      method: 'POST',
      paths: ['/api/functions/queues/:name/resume'],
      summary: 'Start jobs of a paused queue or function again',
      replies: { 200: { description: 'Resumed', schema: ok } },
      errors: [404],
      async handle({ params: { name = '' } }) {
        const declared = nameOf(name)
        await adminOf(background).resume(declared)
        background.parts?.runner.wake([declared])
        return json({ ok: true })
      },
    }),
  ]
}
