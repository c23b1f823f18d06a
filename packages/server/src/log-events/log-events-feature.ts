/** Log events of the features. */
import { type LogEventDefinition, none, reportBug } from './log-event.ts'

const fixRule = 'Fix the rule; until then it denies.'

export const featureLogEvents = {
  'access.bucket_rule_failed': {
    level: 'error',
    fields: ['bucket', 'error'],
    meaning: 'The access rule of a bucket threw an error and denied the request.',
    action: fixRule,
  },
  'access.namespace_rule_failed': {
    level: 'error',
    fields: ['namespace', 'error'],
    meaning: 'The access rule of a namespace threw an error and denied the request.',
    action: fixRule,
  },
  'access.room_rule_failed': {
    level: 'error',
    fields: ['rule', 'error'],
    meaning: 'An access rule of a room threw an error and denied the request.',
    action: fixRule,
  },
  'access.table_rule_failed': {
    level: 'error',
    fields: ['table', 'error'],
    meaning: 'An access rule of a table threw an error and denied the request.',
    action: fixRule,
  },
  'analytics.request_log_failed': {
    level: 'warn',
    fields: ['error'],
    meaning: 'The request log could not be written. The write is retried; requests are counted in memory meanwhile.',
    action: 'Check the database if it persists.',
  },
  'functions.before_slow': {
    level: 'warn',
    fields: ['table', 'medianMs'],
    meaning: 'The hooks that run before writes of the table take more than a millisecond in half of the writes.',
    action: 'Make them faster; what a write need not wait for belongs in `onChange`.',
  },
  'functions.hook_failed': {
    level: 'error',
    fields: ['function', 'location?', 'requestId', 'reason'],
    meaning:
      'A hook threw an error, exceeded its time, or returned what cannot be stored. The request was refused; nothing was stored.',
    action: 'Fix the function; `location` is the line that failed, or where the function is declared.',
  },
  'functions.host_ended': {
    level: 'error',
    fields: ['pid', 'reason', 'location?', 'functions'],
    meaning:
      'A process that runs functions ended: it exceeded its memory or a deadline, or the code ended it. The functions that it ran have failed; another process replaces it.',
    action: 'Fix the function; `location` is the line that ended the process, if it is known.',
  },
  'functions.logs_dropped': {
    level: 'warn',
    fields: ['lines'],
    meaning: 'Functions wrote more log lines than a process may send per second; the excess was dropped.',
    action: 'Log less in the function.',
  },
  'mail.dropped': {
    level: 'error',
    fields: ['template', 'attempts?', 'error'],
    meaning: 'A mail was not sent, and is not retried.',
    action: 'Check the SMTP server and its settings.',
  },
  'mail.dropped_at_close': {
    level: 'error',
    fields: ['count'],
    meaning: 'Mails were still queued at the end of the shutdown and were dropped.',
    action: 'Check the SMTP server.',
  },
  'mail.retrying': {
    level: 'warn',
    fields: ['template', 'attempts', 'error'],
    meaning: 'A mail was not sent yet and is retried.',
    action: 'Check the SMTP server if it persists.',
  },
  'mail.saved': {
    level: 'info',
    fields: ['to', 'subject', 'text'],
    meaning: 'Development mode without SMTP: a mail was saved in the outbox folder instead of being sent.',
    action: none,
  },
  'push.topic_message_rejected': {
    level: 'warn',
    fields: ['topic', 'error'],
    meaning: 'FCM did not accept a message to a topic.',
    action: 'Check `error` and the FCM credentials.',
  },
  'push.topic_send_failed': {
    level: 'error',
    fields: ['topic', 'error'],
    meaning: 'A message to a topic did not reach all of its browsers.',
    action: 'Check the database.',
  },
  'push.topic_sync_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'Topic membership could not be synchronized with FCM. It is retried.',
    action: 'Check the database.',
  },
  'push.topic_sync_rejected': {
    level: 'warn',
    fields: ['topic', 'devices', 'error'],
    meaning: 'FCM did not accept a change of topic membership. It is retried.',
    action: 'Check `error` and the FCM credentials.',
  },
  'records.change_log_failed': {
    level: 'warn',
    fields: ['error'],
    meaning: 'A change log could not be read; subscriptions lag until it can.',
    action: 'Check the database.',
  },
  'records.instance_rejected': {
    level: 'error',
    fields: ['namespace', 'instanceId', 'reasons'],
    meaning: 'The data of an instance conflicts with the configuration; the instance is not served.',
    action: 'Change the configuration or the data as `reasons` say.',
  },
  'records.undeclared_data': {
    level: 'warn',
    fields: ['warning'],
    meaning: 'The data contains a namespace or table that the configuration does not declare. It is kept, not served.',
    action: 'Declare it again if that is a mistake.',
  },
  'records.write_budget_not_counted': {
    level: 'warn',
    fields: ['error'],
    meaning: 'The bytes of a write could not be counted against the budget of its caller.',
    action: 'Check Redis.',
  },
  'room.claim_failed': {
    level: 'warn',
    fields: ['room', 'error'],
    meaning: 'The owner of a room could not be determined. Joins are refused until it can.',
    action: 'Check the database.',
  },
  'room.crashed': {
    level: 'error',
    fields: ['namespace', 'id', 'error'],
    meaning: 'A room ended with an internal error. The next join restores it from its last save.',
    action: reportBug,
  },
  'room.handler_failed': {
    level: 'error',
    fields: ['namespace', 'id', 'handler', 'error'],
    meaning: 'A handler of a room threw an error; its changes were rolled back.',
    action: 'Fix the handler.',
  },
  'room.load_failed': {
    level: 'error',
    fields: ['namespace', 'id', 'error'],
    meaning: 'A room could not be restored; its players are disconnected and may retry.',
    action: 'Check the database, or the handler named in `error`.',
  },
  'room.node_lease_lost': {
    level: 'warn',
    fields: ['node', 'reason'],
    meaning: 'This node lost its lease and has stopped its rooms; other nodes take them over.',
    action: 'Check the database and the load of this node.',
  },
  'room.peer_messages_lost': {
    level: 'warn',
    fields: ['node'],
    meaning: 'Messages of another node were lost; the affected players are synchronized again.',
    action: 'Check Redis if it persists.',
  },
  'room.peer_request_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'A request of another node about a room failed.',
    action: reportBug,
  },
  'room.release_failed': {
    level: 'warn',
    fields: ['room', 'error'],
    meaning: 'The ownership of a room could not be released; it is released when the lease of this node ends.',
    action: 'Check the database.',
  },
  'room.removal_failed': {
    level: 'error',
    fields: ['namespace', 'id', 'error'],
    meaning: 'An expired room could not be deleted. It is retried.',
    action: 'Check the database.',
  },
  'room.save_failed': {
    level: 'error',
    fields: ['rooms', 'error'],
    meaning: 'Rooms could not be saved. They are saved again soon; a crash before that loses their changes.',
    action: 'Check the database.',
  },
  'room.sweep_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'The search for rooms to wake or to expire failed. It is retried.',
    action: 'Check the database.',
  },
  'storage.release_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'Deleted files over their limit could not be removed. It is retried.',
    action: 'Check the storage.',
  },
  'storage.reservations_not_renewed': {
    level: 'warn',
    fields: ['error'],
    meaning:
      'The reservations of uploads in progress could not be renewed. It is retried after a minute; after five minutes they lapse.',
    action: 'Check the database.',
  },
  'storage.variant_eviction_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'Image variants over their limit could not be removed. It is retried when the next variant is stored.',
    action: 'Check the database.',
  },
  'storage.variant_use_not_recorded': {
    level: 'warn',
    fields: ['error'],
    meaning: 'The time of the last use of an image variant could not be stored. It may be removed earlier than others.',
    action: 'Check the database.',
  },
  'subscriptions.broadcast_rule_failed': {
    level: 'error',
    fields: ['name', 'error'],
    meaning: 'The rule of a broadcast channel threw an error and denied the request.',
    action: fixRule,
  },
  'subscriptions.rule_failed': {
    level: 'error',
    fields: ['channel', 'error'],
    meaning: 'A rule could not be evaluated for a change; its subscribers do not receive the change.',
    action: 'Fix the rule.',
  },
  'subscriptions.reconcile_failed': {
    level: 'error',
    fields: ['channel', 'error'],
    meaning:
      'A shared query could not be updated after a change of a table that its rule reads; its subscribers list again.',
    action: 'Check the database.',
  },
  'subscriptions.resume_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'A slow subscriber could not be caught up; its socket was closed.',
    action: 'Check the database.',
  },
  'subscriptions.review_failed': {
    level: 'error',
    fields: ['channel', 'error'],
    meaning: 'The access to a channel could not be checked again; the subscription was ended.',
    action: 'Check the rule and the database.',
  },
  'users.oauth_provider_failed': {
    level: 'warn',
    fields: ['provider', 'reason', 'code?'],
    meaning: 'A sign-in provider did not respond, or responded with an error.',
    action: 'Check the client id and secret, and the state of the provider.',
  },
  'users.public_url_missing': {
    level: 'error',
    fields: [],
    meaning: 'Sign-in through providers needs `PLINTH_PUBLIC_URL`, which is not set.',
    action: 'Set it.',
  },
  'users.revocation_listener_failed': {
    level: 'error',
    fields: ['error'],
    meaning: 'A handler of revocations threw an error; the revocation itself is in force.',
    action: reportBug,
  },
} as const satisfies Readonly<Record<string, LogEventDefinition>>
