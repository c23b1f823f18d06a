/** Where the webhook of a function goes, and with which keys: from its definition and the values of secrets. */
import { parseWebhookKeys } from '../../../base/crypto/webhook-signature.ts'
import type { Config } from '../../../config/config.ts'
import { textOf, type WebhookDefinition } from '../definitions/definition.ts'
import { findHookTarget } from '../definitions/hook-target.ts'
import { JobError } from '../jobs/job-error.ts'
import type { WebhookTarget } from './webhook-delivery.ts'

/** Throws `JobError` where the URL or the secret has no value, or one that is not valid. */
export function webhookTarget(
  { table, url, secret, fields }: WebhookDefinition,
  secrets: Readonly<Record<string, string>>,
  config: Pick<Config, 'namespaces' | 'buckets'>,
): WebhookTarget {
  const values = new Map(Object.entries(secrets))
  const target = findHookTarget(table, config)
  const [to, keys] = [textOf(url, values), textOf(secret, values)]
  if (typeof target === 'string' || to === undefined || keys === undefined || !URL.canParse(to))
    throw new JobError('failed', 'The URL or the secret of the webhook is missing')
  return { table, url: to, keys: keysOf(keys), fields, hidden: target.table.hidden }
}

function keysOf(text: string): WebhookTarget['keys'] {
  try {
    return parseWebhookKeys(text)
  } catch (error) {
    throw new JobError('failed', (error as Error).message)
  }
}
