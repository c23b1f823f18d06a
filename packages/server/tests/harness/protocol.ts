/** Validates messages against the protocol of the reference; undocumented messages are errors. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

interface Definition {
  readonly anyOf?: readonly { readonly $ref?: string }[]
  readonly properties?: Readonly<Record<string, { readonly const?: string }>>
}

const schema = JSON.parse(
  readFileSync(join(import.meta.dir, '..', '..', '..', '..', 'docs', 'reference', 'realtime.schema.json'), 'utf8'),
) as { readonly $defs: Readonly<Record<string, Definition>> }

const unions = {
  subscriptions: { client: 'SubscriptionClientMessage', server: 'SubscriptionServerMessage' },
  rooms: { client: 'RoomClientMessage', server: 'RoomServerMessage' },
} as const

export type Protocol = keyof typeof unions
export type Side = 'client' | 'server'

/** The message types of one side, each with the name of its definition. */
export function messageTypes(protocol: Protocol, side: Side): ReadonlyMap<string, string> {
  const { anyOf = [] } = schema.$defs[unions[protocol][side]] ?? {}
  const names = anyOf.map(({ $ref = '' }) => $ref.slice('#/$defs/'.length))
  return new Map(names.map((name) => [schema.$defs[name]?.properties?.type?.const ?? '', name]))
}

const observed = new Set<string>()

/** Records that a side has sent a message of this type. */
export function observe(protocol: Protocol, side: Side, type: unknown): void {
  observed.add(`${protocol} ${side} ${type}`)
}

/** The message types of a side that were never sent in this process. */
export const unobserved = (protocol: Protocol, side: Side): readonly string[] =>
  [...messageTypes(protocol, side).keys()].filter((type) => !observed.has(`${protocol} ${side} ${type}`))

const validators = new Map<string, z.ZodType>()

function validatorOf(definition: string): z.ZodType {
  const known = validators.get(definition)
  if (known) return known
  const validator = z.fromJSONSchema({ ...schema, $ref: `#/$defs/${definition}` } as z.core.JSONSchema.JSONSchema)
  validators.set(definition, validator)
  return validator
}

/** The protocol of a socket path; null for a path without one. */
export const protocolOf = (path: string): Protocol | null =>
  path.startsWith('/api/room') ? 'rooms' : /^(?:\/dashboard)?\/api\/db\/subscribe/.test(path) ? 'subscriptions' : null

/** Throws for unknown or malformed messages. A frame may contain several messages. */
export function checkMessage(protocol: Protocol, side: Side, message: unknown): void {
  const messages: readonly unknown[] = Array.isArray(message) ? message : [message]
  for (const one of messages) {
    const { type } = one as { readonly type: string }
    observe(protocol, side, type)
    const definition = messageTypes(protocol, side).get(type)
    if (definition === undefined) throw new Error(`${type} is no message of ${protocol}: ${JSON.stringify(one)}`)
    const result = validatorOf(definition).safeParse(one)
    if (!result.success)
      throw new Error(`${JSON.stringify(one)} is not in the form of ${definition}: ${z.prettifyError(result.error)}`)
  }
}
