/** Tries to read, create, change and delete records of another user. */
import type { MatrixOperation, OutlinedTable } from '../../../features/records/rules/matrix/matrix.ts'
import { rulesOf } from '../../../features/records/rules/matrix/matrix.ts'
import { withoutMarks } from '../../../features/records/rules/matrix/sample-caller.ts'
import type { Expr } from '../../../query/expr.ts'
import { exprText } from '../../../query/expr-text.ts'
import { type Callers, type Send, valueOfMark, victimInstances } from './attempts.ts'
import type { AttackerKind, Findings } from './findings.ts'
import { type Marks, marksIn } from './marked-fields.ts'
import { sampleRecord } from './sample-records.ts'

/** All trees of a table's rules for users. */
export const treesOf = ({ outlines }: OutlinedTable): readonly (Expr | null)[] =>
  Object.values(outlines).flatMap(({ user, anonymous }) => [user, anonymous])

/** The rules of an operation for a kind of caller, as text. */
export function ruleText({ outlines }: OutlinedTable, operation: MatrixOperation, attacker: AttackerKind): string {
  const texts = rulesOf[operation].map((rule) => {
    const { anonymous, user } = outlines[rule]
    const expr = attacker === 'anonymous' ? anonymous : user
    return `${rule}: ${expr ? withoutMarks(exprText(expr)) : 'depends on claims'}`
  })
  return texts.join('; ')
}

interface Stored {
  readonly id: string
  readonly body: Readonly<Record<string, unknown>>
}

/** One table in one place: a static namespace or an instance. */
class TableAttack {
  private readonly base: string
  private readonly target: string
  private readonly marks: Marks

  constructor(
    private readonly table: OutlinedTable,
    instance: string | null,
    private readonly callers: Callers,
    private readonly findings: Findings,
  ) {
    const namespace = table.namespace?.name ?? ''
    const parts = ['/api/db', namespace, ...(instance === null ? [] : [instance]), 'tables', table.name]
    this.base = parts.join('/')
    this.target = `${namespace}.${table.name}`
    this.marks = marksIn(treesOf(table))
  }

  private bodyOf(variant: 0 | 1, serial: number, referenceOf: (table: string) => string | null) {
    return sampleRecord(this.table.definition.table, {
      variant,
      serial,
      marked: this.marks.fields,
      valueOfMark,
      referenceOf,
    })
  }

  /** Stores a record of the victim; null where none can be made. */
  private async store(body: Readonly<Record<string, unknown>>, isNoted: boolean): Promise<Stored | null> {
    const { status, isDone, body: answer } = await this.callers.service('POST', this.base, { body })
    if (isDone) return { id: String(answer?.id), body }
    if (isNoted) this.findings.note(`${this.target}: no valid record could be made (${status} ${answer?.message})`)
    return null
  }

  /** Returns the id of a record that others may refer to. */
  async run(referenceOf: (table: string) => string | null): Promise<string | null> {
    const plain = await this.store(this.bodyOf(0, 1, referenceOf), true)
    if (!plain) return null
    await this.attack(plain, null, () => this.bodyOf(0, 3, referenceOf))
    // The next one may have the same unique values.
    await this.remove(plain.id)
    const other = await this.store(this.bodyOf(1, 2, referenceOf), false)
    if (other) {
      await this.attack(other, differenceOf(plain.body, other.body), () => this.bodyOf(1, 4, referenceOf))
      await this.remove(other.id)
    }
    return (await this.store(plain.body, false))?.id ?? null
  }

  private remove(id: string): Promise<unknown> {
    return this.callers.service('DELETE', `${this.base}/${encodeURIComponent(id)}`)
  }

  private async attack(victim: Stored, only: string | null, fresh: () => Record<string, unknown>): Promise<void> {
    const isOwned = this.marks.fields.length > 0
    for (const [attacker, send] of this.callers.attackers) {
      const report = (operation: MatrixOperation): void => {
        const rule = ruleText(this.table, operation, attacker)
        this.findings.add({ target: this.target, operation, attacker, rule, only, isOwned })
      }
      if (await this.reads(send, victim.id)) report('read')
      if (await this.creates(send, fresh())) report('create')
      const path = `${this.base}/${encodeURIComponent(victim.id)}`
      if ((await send('PATCH', path, { body: {} })).isDone) report('update')
      if ((await send('DELETE', path)).isDone) {
        report('delete')
        await this.callers.service('POST', this.base, { body: { ...victim.body, id: victim.id } })
      }
    }
  }

  /** By its id or in a list. */
  private async reads(send: Send, id: string): Promise<boolean> {
    if ((await send('GET', `${this.base}/${encodeURIComponent(id)}`)).isDone) return true
    const filter = encodeURIComponent(JSON.stringify([['id', '==', id]]))
    const { isDone, body } = await send('GET', `${this.base}?filter=${filter}`)
    return isDone && Array.isArray(body?.items) && body.items.length > 0
  }

  private async creates(send: Send, body: Record<string, unknown>): Promise<boolean> {
    const { hidden } = this.table.definition.table
    const sent = Object.fromEntries(Object.entries(body).filter(([name]) => !hidden.has(name)))
    const { isDone, body: created, status } = await send('POST', this.base, { body: sent })
    if (isDone) await this.remove(String(created?.id))
    // The rule comes before the check of unique values.
    return isDone || status === 409
  }
}

/** The fields whose values differ, other than unique ones. */
function differenceOf(plain: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): string {
  const differing = Object.entries(other).filter(([name, value]) => {
    const isText = typeof value === 'string' && value.startsWith('attack')
    return !isText && JSON.stringify(value) !== JSON.stringify(plain[name])
  })
  return differing.map(([name, value]) => `${name} is ${JSON.stringify(value)}`).join(', ') || 'it is another record'
}

/** Tables of a namespace, each after those that it must refer to, as far as there is such an order. */
function inOrder(tables: readonly OutlinedTable[]): readonly OutlinedTable[] {
  const ordered = new Set<OutlinedTable>()
  const visit = (table: OutlinedTable, path: readonly OutlinedTable[]): void => {
    if (ordered.has(table) || path.includes(table)) return
    for (const { references } of table.definition.table.fields.values()) {
      const target = tables.find(({ name }) => name === references)
      if (target) visit(target, [...path, table])
    }
    ordered.add(table)
  }
  for (const table of tables) visit(table, [])
  return [...ordered]
}

/** Attacks every table that is not the platform's own. */
export async function attackRecords(
  tables: readonly OutlinedTable[],
  callers: Callers,
  findings: Findings,
): Promise<void> {
  const byNamespace = new Map<string, OutlinedTable[]>()
  for (const table of tables)
    if (table.namespace && !table.definition.isPlatform) {
      const { name } = table.namespace
      byNamespace.set(name, [...(byNamespace.get(name) ?? []), table])
    }
  for (const own of byNamespace.values()) {
    const instances = own[0]?.namespace?.instance ? victimInstances : [null]
    for (const instance of instances) {
      const ids = new Map<string, string>()
      for (const table of inOrder(own)) {
        const id = await new TableAttack(table, instance, callers, findings).run((name) => ids.get(name) ?? null)
        if (id !== null) ids.set(table.name, id)
      }
    }
  }
}
