/**
 * Executes documents: every fenced `sh` block runs in bash, all blocks of a document in one shell, and the output must
 * match the block below it. Blocks of `ts run` are one program, which runs beside the shell, block by block.
 *
 * Below a block, ```json is compared as a subset (`"…"` is anything, as the last item of a list any further items) and
 * ```text line by line (`…` is anything within a line). A block that is not to be run is preceded by a comment that
 * begins with `not run:` and says why.
 */
import { expect } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Block {
  readonly line: number
  readonly language: 'sh' | 'ts'
  readonly script: string
  readonly expected: { readonly language: string; readonly text: string; readonly line: number } | null
}

/** A block of code in a document. */
export interface Fence {
  readonly language: string
  /** The word after the language, such as `run`. */
  readonly option: string
  readonly text: string
  readonly line: number
  readonly skipped: boolean
}

/** Every fenced block. Throws if one is not closed. */
export function parseFences(markdown: string): Fence[] {
  const fences: Fence[] = []
  const lines = markdown.split('\n')
  for (let start = 0; start < lines.length; start++) {
    const opening = /^```(\w*) ?(\w*)/.exec(lines[start] ?? '')
    if (!opening) continue
    const end = lines.indexOf('```', start + 1)
    if (end < 0) throw new Error(`line ${start + 1}: this code block is never closed`)
    fences.push({
      language: opening[1] ?? '',
      option: opening[2] ?? '',
      text: lines.slice(start + 1, end).join('\n'),
      line: start + 1,
      skipped: (lines[start - 1] ?? '').startsWith('<!-- not run:'),
    })
    start = end
  }
  return fences
}

/** The blocks to run, each with the output block that directly follows it, if any. */
function parseBlocks(markdown: string): Block[] {
  const fences = parseFences(markdown)
  return fences.flatMap((fence, index) => {
    const { language, option, skipped, line, text: script } = fence
    const isProgram = language === 'ts' && option === 'run'
    if (skipped || !(language === 'sh' || isProgram)) return []
    const next = fences[index + 1]
    const expected = next && ['json', 'text'].includes(next.language) ? next : null
    return [{ line, language, script, expected }]
  })
}

/** The TypeScript blocks of a document as one program; `between` separates them. */
export const programOf = (markdown: string, between = '\n'): string =>
  parseBlocks(markdown)
    .filter(({ language }) => language === 'ts')
    .map(({ script }) => script)
    .join(between)

/** Describes the first difference between `actual` and `expected`; null if `actual` matches. */
function findMissing(expected: unknown, actual: unknown, path = '$'): string | null {
  if (expected === '…') return actual === undefined ? `${path} is missing` : null
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return `${path} should be a list, is ${JSON.stringify(actual)}`
    const open = expected.at(-1) === '…'
    const items = open ? expected.slice(0, -1) : expected
    if (open ? actual.length < items.length : actual.length !== items.length) {
      return `${path} should have ${items.length} items, has ${actual.length}: ${JSON.stringify(actual)}`
    }
    return firstOf(items, (item, index) => findMissing(item, actual[index], `${path}[${index}]`))
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null)
      return `${path} should be an object, is ${JSON.stringify(actual)}`
    return firstOf(Object.entries(expected), ([name, value]) =>
      findMissing(value, (actual as Record<string, unknown>)[name], `${path}.${name}`),
    )
  }
  return Object.is(expected, actual)
    ? null
    : `${path} should be ${JSON.stringify(expected)}, is ${JSON.stringify(actual)}`
}

function firstOf<T>(items: readonly T[], find: (item: T, index: number) => string | null): string | null {
  for (const [index, item] of items.entries()) {
    const found = find(item, index)
    if (found !== null) return found
  }
  return null
}

function checkOutput({ expected, script }: Block, output: string): void {
  if (!expected) return
  if (expected.language === 'json') {
    let actual: unknown
    try {
      actual = JSON.parse(output)
    } catch {
      throw new Error(`not JSON:\n${output}`)
    }
    const missing = findMissing(JSON.parse(expected.text), actual)
    if (missing !== null) throw new Error(`${missing}\n\n${script}\n\nprinted ${output}`)
    return
  }
  const lines = output.replaceAll('\r', '').split('\n').filter(Boolean)
  const wanted = expected.text.split('\n').filter(Boolean)
  if (lines.length !== wanted.length) throw new Error(`${lines.length} lines instead of ${wanted.length}:\n${output}`)
  for (const [index, line] of wanted.entries()) {
    const pattern = line.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    expect(lines[index]).toMatch(new RegExp(`^${pattern.join('.*')}$`))
  }
}

/** A program whose blocks each wait for a line of input, and end with the line `mark`. */
const steppedProgram = (program: string, mark: string): string => `import { createInterface } from 'node:readline'
const documentSteps = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const documentStep = async () => {
  console.log('${mark}')
  if ((await documentSteps.next()).done) process.exit()
}
${program}
await documentStep()
`

/** Shell functions that start the program, and run its next block. */
const stepFunctions = (path: string, mark: string): string => `
start_program() {
  mkfifo '${path}.in' '${path}.out'
  '${process.execPath}' '${path}.ts' < '${path}.in' > '${path}.out' &
  exec 198> '${path}.in' 199< '${path}.out'
}
continue_program() { echo >&198; }
finish_block() {
  local line
  while IFS= read -r line <&199; do
    [ "$line" = '${mark}' ] && return 0
    printf '%s\n' "$line"
  done
  return 1
}
`

/** Runs all blocks in one shell; returns the outputs of the successful blocks and the last error. */
async function runBlocks(markdown: string, folder: string): Promise<{ outputs: string[]; failure: string }> {
  const mark = `---${crypto.randomUUID()}---`
  const path = join(folder, `document-${crypto.randomUUID()}`)
  const program = programOf(markdown, '\nawait documentStep()\n')
  let step = 'start_program'
  const scripts = parseBlocks(markdown).map(({ language, script }) => {
    if (language === 'sh') return script
    const commands = `${step}\nfinish_block`
    step = 'continue_program'
    return commands
  })
  writeFileSync(`${path}.ts`, steppedProgram(program, mark))
  const script = scripts.map((commands) => `${commands}\nprintf '%s' '${mark}'\n`).join('')
  const shell = Bun.spawn(['bash', '-e', '-o', 'pipefail', '-c', stepFunctions(path, mark) + script], {
    cwd: folder,
    // Independent of the developer's environment: no proxy, no ~/.curlrc, no keys of other servers.
    env: { PATH: Bun.env.PATH ?? '', HOME: folder, LC_ALL: 'C.UTF-8' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [output, failure] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()])
  await shell.exited
  for (const end of ['ts', 'in', 'out']) rmSync(`${path}.${end}`, { force: true })
  const outputs = output.split(mark)
  return { outputs: outputs.slice(0, -1), failure: `${outputs.at(-1)}\n${failure}` }
}

/**
 * Runs a document of the repository with `folder` as the working directory. Throws with the line of the first block
 * that fails.
 */
export async function runDocument(repository: string, document: string, folder: string): Promise<void> {
  const markdown = await Bun.file(join(repository, document)).text()
  const { outputs, failure } = await runBlocks(markdown, folder)
  for (const [index, block] of parseBlocks(markdown).entries()) {
    const output = outputs[index]
    if (output === undefined) throw new Error(`${document}:${block.line}: the command failed:\n${failure}`)
    try {
      checkOutput(block, output)
    } catch (error) {
      throw new Error(`${document}:${block.line}: ${error instanceof Error ? error.message : error}`)
    }
  }
}
