/** Reads the literal type of a configuration, from which the types of its sections are derived. */

// biome-ignore lint/suspicious/noExplicitAny: a declaration of which nothing is known, such as an annotated one.
export type Unknown = any

/** A member of a declaration; `unknown` if it has none. */
export type Part<T, Name extends string> = unknown extends T
  ? T
  : T extends { readonly [N in Name]: infer Value }
    ? Value
    : unknown

/** What a rule returns. */
export type Returned<Rule> = Rule extends (...args: never) => infer Result ? Result : never

/** Results of rules that are the same for all rows. */
export type Decided = boolean | null | undefined | '' | 0

/**
 * Keeps the literals in the conditions of a rule: while its type is being inferred, `R` is open, and this branch of a
 * conditional type is what the compiler knows of the properties to come.
 */
export interface LiteralConditions {
  readonly [name: string]: '' | (string & {}) | 0 | (number & {}) | boolean | null
}
