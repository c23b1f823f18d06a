/** Log events of jobs, schedules and the dispatcher of changes. */
import { type LogEventDefinition, none } from './log-event.ts'

const checkDatabase = 'Check the database if it persists.'

export const jobLogEvents = {
  'functions.backlog_full': {
    level: 'error',
    fields: ['jobs', 'chars'],
    meaning:
      'There are as many unfinished jobs as may be stored. Jobs cannot be enqueued, and changes wait in their logs, until some are done.',
    action: 'Find the function whose jobs wait with `plinth functions list`; fix it, resume it or add nodes.',
  },
  'functions.changes_lost': {
    level: 'error',
    fields: ['log', 'since'],
    meaning:
      'A change log no longer contains the changes since this time: it exceeded its size before they were dispatched, or the database was restored. Functions do not run for them.',
    action: 'Raise `changes.maxBytes`, and process the records that changed since then with code of your own.',
  },
  'functions.dispatch_failed': {
    level: 'warn',
    fields: ['log', 'error'],
    meaning: 'The changes of a log could not be turned into jobs. It is repeated; no change is lost.',
    action: checkDatabase,
  },
  'functions.job_dead': {
    level: 'error',
    fields: ['function', 'job', 'attempt', 'error'],
    meaning: 'A job failed at its last attempt and is a dead letter.',
    action: 'Fix the function, then `plinth functions retry` the job.',
  },
  'functions.job_failed': {
    level: 'warn',
    fields: ['function', 'job', 'attempt', 'retryAtMs', 'error'],
    meaning: 'An attempt of a job failed; another one follows.',
    action: 'Fix the function if it persists.',
  },
  'functions.jobs_unavailable': {
    level: 'warn',
    fields: ['error'],
    meaning: 'Jobs could not be read or written. It is repeated; no job is lost.',
    action: checkDatabase,
  },
  'functions.loop_stopped': {
    level: 'error',
    fields: ['function', 'depth', 'record'],
    meaning: 'Functions caused each other more often in a row than is permitted; this one did not run for the change.',
    action: 'Restrict one of the functions with `where`, so that they stop to cause each other.',
  },
  'functions.schedule_failed': {
    level: 'warn',
    fields: ['error'],
    meaning: 'Due schedules could not be turned into jobs. It is repeated.',
    action: checkDatabase,
  },
  'functions.schedule_missed': {
    level: 'info',
    fields: ['function', 'since', 'missed'],
    meaning: 'A schedule was due while no server ran; `missed` says whether it runs once now or is skipped.',
    action: none,
  },
} as const satisfies Readonly<Record<`functions.${string}`, LogEventDefinition>>
