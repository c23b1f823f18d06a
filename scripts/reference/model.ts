/**
 * The protocol modules as data: each message with its members, their types and their doc comments. Reads the syntax
 * tree that the TypeScript compiler makes of them; the modules keep to the few forms of types that are known here.
 */
import { join } from 'node:path'
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/async'

/** The type of a member. `codes` is the union of the error codes that one kind of socket sends. */
export type TypeForm =
  | { readonly kind: 'string' | 'integer' | 'boolean' | 'null' | 'any' }
  | { readonly kind: 'literal'; readonly value: string }
  | { readonly kind: 'array' | 'record'; readonly of: TypeForm }
  | { readonly kind: 'tuple'; readonly items: readonly { readonly name: string; readonly type: TypeForm }[] }
  | { readonly kind: 'union'; readonly of: readonly TypeForm[] }
  | { readonly kind: 'ref'; readonly name: string }
  | { readonly kind: 'codes'; readonly on: string }

export interface Member {
  readonly name: string
  readonly isOptional: boolean
  readonly type: TypeForm
  readonly doc: string
}

export interface Shape {
  readonly name: string
  readonly doc: string
  readonly members: readonly Member[]
  /** Codes of the tag `@errors`. */
  readonly errors: readonly string[]
}

export interface Alias {
  readonly name: string
  readonly doc: string
  readonly type: TypeForm
}

export interface CloseCodeEntry {
  readonly code: number
  readonly doc: string
}

export interface Model {
  readonly shapes: ReadonlyMap<string, Shape>
  readonly aliases: ReadonlyMap<string, Alias>
  readonly closeCodes: readonly CloseCodeEntry[]
}

/** Nodes of every kind; the compiler's types of them are one per kind. */
type AnyNode = Node & {
  readonly name?: { readonly text: string }
  readonly type?: AnyNode
  readonly types?: Iterable<AnyNode>
  readonly members?: Iterable<AnyNode>
  readonly elements?: Iterable<AnyNode>
  readonly elementType?: AnyNode
  readonly typeName?: { readonly text: string }
  readonly typeArguments?: Iterable<AnyNode>
  readonly expression?: AnyNode & { readonly text: string }
  readonly literal?: AnyNode & { readonly text: string }
  readonly heritageClauses?: Iterable<AnyNode>
  readonly declarationList?: { readonly declarations: Iterable<AnyNode> }
  readonly initializer?: AnyNode
  readonly properties?: Iterable<AnyNode>
  readonly postfixToken?: AnyNode
  readonly text: string
  readonly jsDoc?: Iterable<AnyNode>
  readonly comment?: Iterable<{ readonly text: string }>
  readonly tags?: Iterable<AnyNode & { readonly tagName: { readonly text: string } }>
}

const files = [
  'packages/server/src/http/sockets/socket-protocol.ts',
  'packages/server/src/features/subscriptions/protocol.ts',
  'packages/server/src/features/rooms/protocol.ts',
]

const list = <T>(items: Iterable<T> | undefined): readonly T[] => (items ? Array.from(items) : [])

const textOf = (parts: Iterable<{ readonly text: string }> | undefined): string =>
  list(parts)
    .map(({ text }) => text)
    .join('')
    .trim()
    .replaceAll(/\s*\n(?!\n|- )\s*/g, ' ')

const docOf = (node: AnyNode): string => textOf(list(node.jsDoc).at(-1)?.comment)

function errorsOf(node: AnyNode): readonly string[] {
  const tags = list(list(node.jsDoc).at(-1)?.tags)
  const tag = tags.find(({ tagName }) => tagName.text === 'errors')
  return tag ? textOf(tag.comment).split(/\s+/) : []
}

function unknownForm(node: AnyNode): never {
  throw new Error(`scripts/reference does not know types of the form ${SyntaxKind[node.kind]}`)
}

const keywords: Readonly<Partial<Record<SyntaxKind, TypeForm>>> = {
  [SyntaxKind.StringKeyword]: { kind: 'string' },
  [SyntaxKind.NumberKeyword]: { kind: 'integer' },
  [SyntaxKind.BooleanKeyword]: { kind: 'boolean' },
  [SyntaxKind.UnknownKeyword]: { kind: 'any' },
}

function formOf(node: AnyNode | undefined): TypeForm {
  if (!node) throw new Error('A member of the protocol has no type')
  const keyword = keywords[node.kind]
  if (keyword) return keyword
  switch (node.kind) {
    case SyntaxKind.LiteralType: {
      const { literal } = node
      if (literal?.kind === SyntaxKind.NullKeyword) return { kind: 'null' }
      return literal?.kind === SyntaxKind.StringLiteral ? { kind: 'literal', value: literal.text } : unknownForm(node)
    }
    case SyntaxKind.UnionType:
      return { kind: 'union', of: list(node.types).map(formOf) }
    case SyntaxKind.ArrayType:
      return { kind: 'array', of: formOf(node.elementType) }
    case SyntaxKind.TypeOperator:
      return formOf(node.type)
    case SyntaxKind.TupleType:
      return {
        kind: 'tuple',
        items: list(node.elements).map(({ name, type }) => ({ name: name?.text ?? '', type: formOf(type) })),
      }
    case SyntaxKind.TypeReference:
      return formOfReference(node)
    default:
      return unknownForm(node)
  }
}

function formOfReference(node: AnyNode): TypeForm {
  const name = node.typeName?.text ?? ''
  const [first, second] = list(node.typeArguments)
  if (name === 'Readonly') return formOf(first)
  if (name === 'Record') return { kind: 'record', of: formOf(second) }
  if (name === 'SocketErrorCodeOn') return { kind: 'codes', on: first?.literal?.text ?? '' }
  return first ? unknownForm(node) : { kind: 'ref', name }
}

/** Members of the interfaces that one extends, `Omit` included. */
function inherited(node: AnyNode, shapes: ReadonlyMap<string, Shape>): readonly Member[] {
  return list(node.heritageClauses)
    .flatMap(({ types }) => list(types))
    .flatMap(({ expression, typeArguments }) => {
      const [base, omitted] = list(typeArguments)
      const name = expression?.text === 'Omit' ? base?.typeName?.text : expression?.text
      const shape = shapes.get(name ?? '')
      if (!shape) throw new Error(`The interface ${name} is not declared before it is extended`)
      return shape.members.filter((member) => member.name !== omitted?.literal?.text)
    })
}

function shapeOf(node: AnyNode, shapes: ReadonlyMap<string, Shape>): Shape {
  const own = list(node.members).map(
    (member): Member => ({
      name: member.name?.text ?? '',
      isOptional: member.postfixToken?.kind === SyntaxKind.QuestionToken,
      type: formOf(member.type),
      doc: docOf(member),
    }),
  )
  const names = new Set(own.map(({ name }) => name))
  const members = [...inherited(node, shapes).filter(({ name }) => !names.has(name)), ...own]
  return { name: node.name?.text ?? '', doc: docOf(node), members, errors: errorsOf(node) }
}

function closeCodesOf(statement: AnyNode): readonly CloseCodeEntry[] {
  const declaration = list(statement.declarationList?.declarations).find(({ name }) => name?.text === 'closeCodes')
  return list(declaration?.initializer?.expression?.properties).map((property) => ({
    code: Number(property.initializer?.text),
    doc: docOf(property),
  }))
}

async function parse(root: string): Promise<readonly SourceFile[]> {
  const api = new API({ cwd: root })
  try {
    const openProjects = [join(root, 'scripts/reference/tsconfig.json')]
    const snapshot = await api.updateSnapshot({ openProjects })
    const [project] = snapshot.getProjects()
    const parsed = await Promise.all(files.map((file) => project?.program.getSourceFile(join(root, file))))
    return parsed.map((file, at) => {
      if (!file) throw new Error(`${files[at]} is not part of scripts/reference/tsconfig.json`)
      return file
    })
  } finally {
    await api.close()
  }
}

/** `root` is the folder of the repository. */
export async function readModel(root: string): Promise<Model> {
  const shapes = new Map<string, Shape>()
  const aliases = new Map<string, Alias>()
  const closeCodes: CloseCodeEntry[] = []
  for (const file of await parse(root))
    for (const statement of file.statements as Iterable<Node> as Iterable<AnyNode>) {
      const name = statement.name?.text ?? ''
      if (statement.kind === SyntaxKind.InterfaceDeclaration) shapes.set(name, shapeOf(statement, shapes))
      else if (statement.kind === SyntaxKind.VariableStatement) closeCodes.push(...closeCodesOf(statement))
      else if (statement.kind === SyntaxKind.TypeAliasDeclaration && name !== 'CloseCode')
        aliases.set(name, { name, doc: docOf(statement), type: formOf(statement.type) })
    }
  return { shapes, aliases, closeCodes }
}
