/** Expression trees as text for people, in the notation of filters: `ownerId == "ada" and not (status == "draft")`. */
import { clauseListValuesMax, clauseTextCharsMax, clauseValueCharsMax } from '../limits/api.ts'
import type { Expr, OuterField, Scalar } from './expr.ts'
import type { Area } from './geo/area.ts'
import { metersOf } from './geo/sphere.ts'

export const cut = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`

const scalarText = (value: Scalar): string => cut(JSON.stringify(value), clauseValueCharsMax)

function listText(values: readonly Scalar[]): string {
  const shown = values.slice(0, clauseListValuesMax).map(scalarText)
  const more = values.length - shown.length
  return `[${[...shown, ...(more > 0 ? [`… ${more} more`] : [])].join(', ')}]`
}

const areaText = (area: Area): string =>
  area.kind === 'circle'
    ? `near [${area.center.join(', ')}, "${Math.round(metersOf(area.most))}m"]`
    : `within a ${area.kind}`

/** `self` is the row that the fields belong to, `outer` the row around the `exists` that the tree is in. */
function textOf(expr: Expr, self: string, outer: string): string {
  const operand = (value: Scalar | OuterField): string =>
    typeof value === 'object' ? `${outer}.${value.outer}` : scalarText(value)
  switch (expr.kind) {
    case 'const':
      return String(expr.value)
    case 'null':
      return `${expr.field} ${expr.negated ? '!=' : '=='} null`
    case 'compare':
      return `${expr.field} ${expr.op} ${operand(expr.value)}`
    case 'contains':
      return `${expr.field} contains ${scalarText(expr.value)}`
    case 'geo':
      return `${expr.field} ${areaText(expr.area)}`
    case 'in':
      return `${expr.field} ${expr.negated ? 'not in' : 'in'} ${listText(expr.values)}`
    case 'and':
    case 'or':
      return expr.of.map((part) => grouped(part, expr.kind, self, outer)).join(` ${expr.kind} `)
    case 'not':
      return `not (${textOf(expr.of, self, outer)})`
    case 'exists':
      return `exists(${expr.table}, ${textOf(expr.where, expr.table, self)})`
  }
}

const grouped = (part: Expr, within: 'and' | 'or', self: string, outer: string): string => {
  const text = textOf(part, self, outer)
  return (part.kind === 'and' || part.kind === 'or') && part.kind !== within ? `(${text})` : text
}

/** The text of a tree, cut to a bound. Fields of the row that an `exists` refers to are written `row.field`. */
export const exprText = (expr: Expr): string => cut(textOf(expr, 'row', 'row'), clauseTextCharsMax)
