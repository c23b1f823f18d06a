/** The part of Standard Schema (https://standardschema.dev) that validates: zod, valibot, arktype and others. */

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** Of Standard JSON Schema, where the library supports it. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: string }) => Record<string, unknown>
      readonly output?: (options: { readonly target: string }) => Record<string, unknown>
    }
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What a schema accepts, and what it returns. */
export type SchemaInput<Schema> = Schema extends StandardSchema<infer Input, unknown> ? Input : never
export type SchemaOutput<Schema> = Schema extends StandardSchema<infer _Input, infer Output> ? Output : never

export const isStandardSchema = (value: unknown): value is StandardSchema =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
  typeof (value as Partial<StandardSchema>)['~standard']?.validate === 'function'
