/** `plinth rules`: what the access rules of a running server permit. */
import { type Call, type Command, UsageError } from '../command.ts'
import { attackRules } from '../rules/attack/attack.ts'
import { explainRules } from '../rules/explain-rules.ts'
import { printMatrix } from '../rules/rules-matrix.ts'
import { configOptions } from '../serve.ts'

export const rulesCommand: Command = {
  name: 'rules',
  summary: 'Explain what the access rules permit to whom',
  operands: ['<action>', '[namespace]', '[table]', '[operation]'],
  options: {
    as: { value: '<caller>', help: 'anonymous (default), user:ID, or claims:\'{"id":"ada","custom":{…}}\'' },
    id: { value: '<id>', help: 'The record' },
    row: { value: '<json>', help: 'A record in place of a stored one, or the body of a write' },
    instance: { value: '<id>', help: 'The instance of a dynamic namespace' },
    filter: { value: '<json>', help: 'Conditions of a list' },
    sort: { value: '<fields>', help: 'Order of a list' },
    allow: { value: '<names>', help: 'Findings of an attack that are intended, separated by commas' },
    json: { help: 'Print JSON' },
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `Actions:
  explain <namespace> <table> <operation>   Why a caller may or may not list, get, create,
                                            update or delete: each clause of the rules
  matrix [namespace]                        What anonymous callers, users, owners, other
                                            users and other tenants may do with each table

  attack                                    Tries to read and write what belongs to another
                                            user; exits with 1 if something is open

explain and matrix write nothing. They call a running server with its service key; for a
server on PostgreSQL, give --url and PLINTH_SERVICE_KEY. attack starts a server of its own,
with the configuration and functions of the project, on an empty folder that it removes.
With --url it has a running server explain attempts on stored records instead.`,
  run,
}

/** The actions, with the number of operands that each needs. */
const actions: Readonly<Record<string, { readonly operands: number; readonly run: (call: Call) => Promise<number> }>> =
  {
    explain: { operands: 3, run: explainRules },
    matrix: { operands: 0, run: printMatrix },
    attack: { operands: 0, run: attackRules },
  }

async function run(call: Call): Promise<number> {
  const [name = '', ...operands] = call.operands
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action)
    throw new UsageError(
      `"${name}" is not an action of \`plinth rules\`. Available: ${Object.keys(actions).join(', ')}.`,
    )
  if (operands.length < action.operands)
    throw new UsageError(`\`plinth rules ${name}\` needs <namespace> <table> <operation>.`)
  return action.run({ ...call, operands })
}
