/** Maps a payload to FCM's HTTP v1 API: the common part, and the parts for Android, iOS and browsers. */
import type { Clock } from '../../../base/clock.ts'
import { isJsonObject, type JsonObject } from '../../../base/text/json.ts'
import type { Payload } from '../message.ts'
import { webTopicOf } from './web-push-topic.ts'

export type FcmTarget = { readonly token: string } | { readonly topic: string }

/** The request body. Overrides are applied last, before the target. */
export function fcmMessage(payload: Payload, target: FcmTarget, clock: Clock): JsonObject {
  const { title, body, image, data, silent = false, fcm = {} } = payload
  const common = compact({
    notification: silent ? undefined : compact({ title, body, image }),
    data: data && Object.fromEntries(Object.entries(data).map(([name, value]) => [name, asText(value)])),
    android: androidOf(payload),
    apns: apnsOf(payload, clock),
    webpush: webpushOf(payload),
  })
  return { message: { ...overlay(common, fcm), ...target } }
}

/** FCM accepts only string values. */
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const androidOf = ({ sound, badge, collapseId, ttl, silent = false }: Payload): JsonObject =>
  compact({
    priority: silent ? 'NORMAL' : 'HIGH',
    collapse_key: collapseId,
    ttl: ttl === undefined ? undefined : `${ttl}s`,
    notification: silent ? undefined : filled(compact({ sound, notification_count: badge, tag: collapseId })),
  })

function apnsOf({ image, sound, badge, collapseId, ttl, silent = false }: Payload, clock: Clock): JsonObject {
  // Zero means "deliver immediately or discard" to APNs, not a time.
  const expiration = ttl === undefined ? undefined : ttl === 0 ? 0 : Math.floor(clock.now() / 1000) + ttl
  return compact({
    headers: compact({
      // APNs rejects silent messages with high priority.
      'apns-push-type': silent ? 'background' : 'alert',
      'apns-priority': silent ? '5' : '10',
      'apns-collapse-id': collapseId,
      'apns-expiration': expiration === undefined ? undefined : String(expiration),
    }),
    payload: {
      aps: compact({
        sound: silent ? undefined : sound,
        badge,
        'content-available': silent ? 1 : undefined,
        'mutable-content': image !== undefined && !silent ? 1 : undefined,
      }),
    },
    fcm_options: image === undefined || silent ? undefined : { image },
  })
}

const webpushOf = ({ collapseId, ttl, silent = false }: Payload): JsonObject =>
  compact({
    headers: compact({
      Urgency: silent ? 'normal' : 'high',
      TTL: ttl === undefined ? undefined : String(ttl),
      Topic: collapseId === undefined ? undefined : webTopicOf(collapseId),
    }),
    notification: silent || collapseId === undefined ? undefined : { tag: collapseId },
  })

/** Removes undefined members. */
const compact = (members: Readonly<Record<string, unknown>>): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))

const filled = (members: JsonObject): JsonObject | undefined =>
  Object.keys(members).length === 0 ? undefined : members

/** Merges objects recursively; lists and plain values are replaced. */
function overlay(under: JsonObject, over: JsonObject): JsonObject {
  const merged = new Map(Object.entries(under))
  for (const [name, value] of Object.entries(over)) {
    const known = merged.get(name)
    merged.set(name, isJsonObject(known) && isJsonObject(value) ? overlay(known, value) : value)
  }
  return Object.fromEntries(merged)
}
