/** Where the tables of a schema are drawn: each namespace by itself, its related tables in layers, the others below. */
import { Graph, layout } from '@dagrejs/dagre'
import type { Schema, TableDescription } from '../../../app/queries.ts'

export interface DiagramField {
  readonly name: string
  readonly type: string
  /** The table that it refers to. */
  readonly references?: string
}

export interface DiagramTable {
  readonly table: TableDescription
  /** References first; of others as many as fit. */
  readonly fields: readonly DiagramField[]
  /** Fields that are not drawn. */
  readonly more: number
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface DiagramEdge {
  readonly key: string
  readonly from: string
  readonly to: string
  readonly points: readonly { readonly x: number; readonly y: number }[]
}

export interface DiagramGroup {
  readonly namespace: string
  readonly hasInstances: boolean
  readonly tables: readonly DiagramTable[]
  readonly edges: readonly DiagramEdge[]
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface Diagram {
  readonly groups: readonly DiagramGroup[]
  readonly width: number
  readonly height: number
}

export const tableWidth = 220
export const headHeight = 34
export const fieldHeight = 22
/** Fields that are drawn besides references. */
const plainFieldsMax = 6
const gap = 40
/** Of the line of a table that refers to itself. */
const loopWidth = 20
const groupPadding = 28
const groupTitle = 36

type Sized = Omit<DiagramTable, 'x' | 'y'>

function sizeOf(table: TableDescription): Sized {
  const all = Object.entries(table.fields).map(([name, { type, enum: values, references }]) => ({
    name,
    type: values ? 'enum' : type,
    ...(references === undefined ? {} : { references }),
  }))
  const references = all.filter((field) => field.references !== undefined)
  const plain = all.filter(
    ({ name, references }) => references === undefined && !['createdAt', 'updatedAt'].includes(name),
  )
  const fields = [...references, ...plain.slice(0, plainFieldsMax)]
  const more = plain.length - Math.min(plain.length, plainFieldsMax)
  const lines = fields.length + (more > 0 ? 1 : 0)
  return { table, fields, more, width: tableWidth, height: headHeight + lines * fieldHeight + 8 }
}

interface Block {
  readonly tables: readonly DiagramTable[]
  readonly edges: readonly DiagramEdge[]
  readonly width: number
  readonly height: number
}

/** Related tables, those that are referred to on the right. */
function layerOf(tables: readonly Sized[], relations: readonly { from: string; to: string; field: string }[]): Block {
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: 'LR', nodesep: 28, ranksep: 90, marginx: 0, marginy: 0 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { table, width, height } of tables) graph.setNode(table.name, { width, height })
  for (const { from, to, field } of relations) if (from !== to) graph.setEdge(from, to, {}, field)
  layout(graph)
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number }
  const placed = tables.map((one): DiagramTable => {
    const { x, y } = graph.node(one.table.name) as { x: number; y: number }
    return { ...one, x: x - one.width / 2, y: y - one.height / 2 }
  })
  const edges = graph.edges().map(({ v, w, name }) => ({
    key: `${v}.${name} ${w}`,
    from: v,
    to: w,
    points: (graph.edge(v, w, name) as { points: { x: number; y: number }[] }).points,
  }))
  const loops = relations
    .filter(({ from, to }) => from === to)
    .map(({ from, to, field }) => ({ key: `${from}.${field}`, from, to, points: loopOf(placed, from) }))
  return { tables: placed, edges: [...edges, ...loops], width: width + loopWidth, height }
}

/** The line of a table that refers to itself, at its right side. */
function loopOf(tables: readonly DiagramTable[], name: string): DiagramEdge['points'] {
  const { x = 0, y = 0, width = 0, height = 0 } = tables.find(({ table }) => table.name === name) ?? {}
  const right = x + width
  const [top, bottom] = [y + headHeight / 2, y + height - 12]
  return [
    { x: right, y: bottom },
    { x: right + loopWidth, y: bottom },
    { x: right + loopWidth, y: top },
    { x: right, y: top },
  ]
}

/** Tables without relations, in rows. */
function gridOf(tables: readonly Sized[], top: number): Block {
  const columns = Math.max(3, Math.ceil(Math.sqrt(tables.length * 1.4)))
  const placed: DiagramTable[] = []
  let y = top
  for (let at = 0; at < tables.length; at += columns) {
    const row = tables.slice(at, at + columns)
    placed.push(...row.map((one, column) => ({ ...one, x: column * (tableWidth + gap), y })))
    y += Math.max(...row.map(({ height }) => height)) + gap
  }
  const used = Math.min(columns, tables.length)
  return { tables: placed, edges: [], width: used * (tableWidth + gap) - gap, height: y - top - gap }
}

function groupOf(
  namespace: string,
  hasInstances: boolean,
  tables: readonly TableDescription[],
  top: number,
): DiagramGroup {
  const names = new Set(tables.map(({ name }) => name))
  const relations = tables.flatMap(({ name: from, fields }) =>
    Object.entries(fields).flatMap(([field, { references: to }]) =>
      to !== undefined && names.has(to) ? [{ from, to, field }] : [],
    ),
  )
  const related = new Set(relations.flatMap(({ from, to }) => [from, to]))
  const sized = tables.map(sizeOf)
  const empty: Block = { tables: [], edges: [], width: 0, height: 0 }
  const inLayers = sized.filter(({ table }) => related.has(table.name))
  const others = sized.filter(({ table }) => !related.has(table.name))
  const layers = inLayers.length > 0 ? layerOf(inLayers, relations) : empty
  const grid = others.length > 0 ? gridOf(others, layers.height === 0 ? 0 : layers.height + gap) : empty
  const height = layers.height + grid.height + (layers.height > 0 && grid.height > 0 ? gap : 0)
  return {
    namespace,
    hasInstances,
    tables: [...layers.tables, ...grid.tables],
    edges: layers.edges,
    x: 0,
    y: top,
    width: Math.max(layers.width, grid.width) + 2 * groupPadding,
    height: height + 2 * groupPadding + groupTitle,
  }
}

/** Of a table in its group, from the edge of the group. */
export const inset = { x: groupPadding, y: groupPadding + groupTitle }

export function layoutSchema({ namespaces, tables }: Pick<Schema, 'namespaces' | 'tables'>): Diagram {
  const groups: DiagramGroup[] = []
  let top = 0
  for (const [namespace, { instance }] of Object.entries(namespaces)) {
    const own = Object.values(tables).filter((table) => table.namespace === namespace)
    if (own.length === 0) continue
    const group = groupOf(namespace, instance, own, top)
    groups.push(group)
    top += group.height + gap
  }
  return { groups, width: Math.max(0, ...groups.map(({ width }) => width)), height: Math.max(0, top - gap) }
}
