#!/usr/bin/env node
/** The command line of `npm create plinth@latest`: what to create and where, from arguments or by prompts. */
import { basename, relative, resolve } from 'node:path'
import { createInterface, type Interface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { createProject, ProjectError } from './project.ts'
import { findTemplate, type Template, templates } from './templates.ts'

const oldestNode = 20

const help = `Creates an application on Plinth.

Usage: npm create plinth@latest [folder] -- [--template <name>]

Templates:
${templates.map(({ name, summary }) => `  ${name.padEnd(12)}${summary}`).join('\n')}

Without a terminal the folder is required and the template defaults to ${templates[0].name}.`

class UsageError extends Error {}

interface Choice {
  readonly folder: string
  readonly template: Template
}

async function choose(words: readonly string[], wanted: string | undefined): Promise<Choice> {
  const [folder, ...rest] = words
  if (rest.length > 0) throw new UsageError(`Unexpected argument: ${rest[0]}`)
  if (wanted !== undefined && findTemplate(wanted) === undefined)
    throw new UsageError(`Unknown template: ${wanted}. Choose one of ${templates.map(({ name }) => name).join(', ')}.`)
  const template = wanted === undefined ? undefined : findTemplate(wanted)
  if (folder !== undefined && template !== undefined) return { folder, template }
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    if (folder === undefined) throw new UsageError('The folder is missing: npm create plinth@latest app')
    return { folder, template: template ?? templates[0] }
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return {
      folder: folder ?? ((await terminal.question('Folder (app): ')).trim() || 'app'),
      template: template ?? (await promptTemplate(terminal)),
    }
  } finally {
    terminal.close()
  }
}

async function promptTemplate(terminal: Interface): Promise<Template> {
  const list = templates.map(({ name, summary }, at) => `  ${at + 1}  ${name.padEnd(12)}${summary}`).join('\n')
  console.log(`Template:\n${list}`)
  for (;;) {
    const answer = (await terminal.question('Number or name (1): ')).trim() || '1'
    const template = findTemplate(answer) ?? templates[Number(answer) - 1]
    if (template !== undefined) return template
    console.log(`There is no template ${answer}.`)
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { template: { type: 'string', short: 't' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(help)
    return 0
  }
  if (Number(process.versions.node.split('.')[0]) < oldestNode)
    throw new UsageError(`Node.js ${oldestNode} or newer is required; this is ${process.versions.node}.`)
  const { folder, template } = await choose(positionals, values.template)
  const path = resolve(folder)
  createProject(path, template)
  const shown = relative('.', path)
  console.log(`\nCreated ${basename(path)} from the template ${template.name}. Next:\n`)
  for (const line of [...(shown === '' ? [] : [`cd ${shown}`]), 'npm install', ...template.next])
    console.log(`  ${line}`)
  console.log('')
  return 0
}

/** Mistakes of the command line, including those that `parseArgs` finds. */
const isUsageError = (error: unknown): error is Error =>
  error instanceof UsageError ||
  error instanceof ProjectError ||
  (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))

/** The message for an error that the user caused: a mistake, or Ctrl-C or Ctrl-D at a prompt. Throws any other. */
function describe(error: unknown): string {
  if (isUsageError(error)) return error.message
  if (error instanceof Error && error.name === 'AbortError') return '\nCanceled; nothing was created.'
  throw error
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(describe(error))
  process.exitCode = 1
}
