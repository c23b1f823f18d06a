/** Keys and measures of aggregates, as functions: `groupBy(day('createdAt')).aggregate({ n: count() })`. */

export const count = (): 'count' => 'count'

export const countDistinct = <const Field extends string>(field: Field): { readonly countDistinct: Field } => ({
  countDistinct: field,
})

export const sum = <const Field extends string>(field: Field): { readonly sum: Field } => ({ sum: field })

export const avg = <const Field extends string>(field: Field): { readonly avg: Field } => ({ avg: field })

export const min = <const Field extends string>(field: Field): { readonly min: Field } => ({ min: field })

export const max = <const Field extends string>(field: Field): { readonly max: Field } => ({ max: field })

/** A key with its name in the answer, which is the field's by default. */
type Named<Kind extends string, Field, As> = { readonly [Name in Kind]: Field } & { readonly as: As }

/** The local hour in a time zone, UTC by default: `2026-01-31T13`. */
export const hour = <const Field extends string, const As extends string = Field>(
  field: Field,
  tz?: string,
  as?: As,
): Named<'hour', Field, As> & { readonly tz?: string } => ({ hour: field, tz, as }) as never

/** The local day: `2026-01-31`. */
export const day = <const Field extends string, const As extends string = Field>(
  field: Field,
  tz?: string,
  as?: As,
): Named<'day', Field, As> & { readonly tz?: string } => ({ day: field, tz, as }) as never

/** The local week, named by its Monday. */
export const week = <const Field extends string, const As extends string = Field>(
  field: Field,
  tz?: string,
  as?: As,
): Named<'week', Field, As> & { readonly tz?: string } => ({ week: field, tz, as }) as never

/** The local month: `2026-01`. */
export const month = <const Field extends string, const As extends string = Field>(
  field: Field,
  tz?: string,
  as?: As,
): Named<'month', Field, As> & { readonly tz?: string } => ({ month: field, tz, as }) as never

/** The local year: `2026`. */
export const year = <const Field extends string, const As extends string = Field>(
  field: Field,
  tz?: string,
  as?: As,
): Named<'year', Field, As> & { readonly tz?: string } => ({ year: field, tz, as }) as never

/** The range of a number, named by its lower bound: 0 to below `width`, and so on. */
export const bucket = <const Field extends string, const As extends string = Field>(
  field: Field,
  width: number,
  as?: As,
): Named<'bucket', Field, As> & { readonly width: number } => ({ bucket: field, width, as }) as never
