/** The program that is measured: calls a server and follows its lists, as the jobs say. */
import { serveJobs } from '../setup/jobs.ts'
import { type CallsJob, type CallsResult, runCalls } from './calls.ts'
import { createFollower, type FollowJob, type FollowResult } from './follow.ts'

export type ClientJob = CallsJob | FollowJob
export type ClientResult = CallsResult | FollowResult | null

const follow = createFollower()

await serveJobs<ClientJob, ClientResult>((job) => (job.do === 'calls' ? runCalls(job) : follow(job)))
