/** The `Topic` header of web push (RFC 8030): a new message replaces a pending one with the same topic. */
import { createHash } from 'node:crypto'
import { webPushTopicCharsMax } from '../../../limits/push.ts'

/** A collapse id as a header value; its hash if it is too long or has other characters. */
export const webTopicOf = (collapseId: string): string =>
  /^[\w-]+$/.test(collapseId) && collapseId.length <= webPushTopicCharsMax
    ? collapseId
    : createHash('sha256').update(collapseId).digest('base64url').slice(0, webPushTopicCharsMax)
